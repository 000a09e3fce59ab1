// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "LicenseCheck",
    platforms: [.macOS(.v12)],
    dependencies: [.package(url: "https://github.com/apple/swift-crypto.git", from: "3.0.0")],
    targets: [
        .executableTarget(name: "LicenseCheck", dependencies: [.product(name: "Crypto", package: "swift-crypto")])
    ]
)
