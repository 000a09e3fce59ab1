// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "LicenseCheck",
    platforms: [.macOS(.v12)],
    targets: [.executableTarget(name: "LicenseCheck")]
)
