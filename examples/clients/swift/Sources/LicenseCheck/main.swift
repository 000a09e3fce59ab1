// Checks a license key when it starts, and counts a use: LicenseCheck LICENSE-KEY
import Foundation
#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

struct Answer: Decodable {
    struct License: Decodable {
        let enabled: Bool
        let uses: Int
        /// Absent if the license has no end.
        let expires_at: String?
        let grace_until: String?
    }
    let data: License?
    let code: String?
}

let environment = ProcessInfo.processInfo.environment
let base = environment["LATCHKEY_URL"] ?? "http://127.0.0.1:8787"
let file = URL(fileURLWithPath: environment["LATCHKEY_LAST_KNOWN"] ?? "last-known")
let deadline: TimeInterval = 10
let grace: TimeInterval = 14 * 24 * 3600

/// A redirect would send the secret to another server.
final class NoRedirects: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}

let configuration = URLSessionConfiguration.ephemeral
// The limit for the whole answer: the timeout of a request covers each wait for data.
configuration.timeoutIntervalForResource = 5
// A proxy of the environment would see the secret.
configuration.connectionProxyDictionary = [:]
let session = URLSession(configuration: configuration, delegate: NoRedirects(), delegateQueue: nil)

func request(_ path: String, _ key: String) -> URLRequest {
    var parts = URLComponents(string: base + path)!
    parts.queryItems = [URLQueryItem(name: "license_key", value: key), URLQueryItem(name: "product_key", value: product)]
    // Foundation does not encode a plus sign, which a form reads as a space.
    parts.percentEncodedQuery = parts.percentEncodedQuery?.replacingOccurrences(of: "+", with: "%2B")
    var request = URLRequest(url: parts.url!)
    request.setValue(environment["LATCHKEY_SECRET"], forHTTPHeaderField: "product-secret-key")
    request.setValue("application/problem+json, application/json", forHTTPHeaderField: "Accept")
    return request
}

func send(_ request: URLRequest) async throws -> (Int, Answer) {
    let (body, response) = try await session.data(for: request)
    return ((response as! HTTPURLResponse).statusCode, try JSONDecoder().decode(Answer.self, from: body))
}

/// The verdict, and the end of a license that ends.
func verify(_ key: String) async -> (String, Date?) {
    guard let (status, answer) = try? await send(request("/api/v2/license/verify", key)) else {
        return ("undetermined", nil)
    }
    if status == 200, let license = answer.data {
        let end = (license.grace_until ?? license.expires_at).flatMap { ISO8601DateFormatter().date(from: $0) }
        return (license.enabled ? "valid" : "refused: disabled", end)
    }
    return (status == 404 && answer.code == "license_not_found" ? "refused: not found" : "undetermined", nil)
}

struct LeaseAnswer: Decodable {
    let data: Documents?
    let code: String?
}

/// What the vendor has signed for this device: another program on the port cannot say it. And what that unlocks.
func leased(_ key: String) async -> (String, [String]) {
    let nonce = UUID().uuidString
    // The version of the keys that was seen last. Keys that the vendor has retired have a lower one.
    let seen = (try? String(contentsOf: file, encoding: .utf8)).flatMap { Int($0) } ?? 0
    do {
        var get = request("/agent/v1/lease", key)
        get.url = URL(string: get.url!.absoluteString + "&nonce=\(nonce)")
        let (body, response) = try await session.data(for: get)
        let answer = try JSONDecoder().decode(LeaseAnswer.self, from: body)
        let status = (response as! HTTPURLResponse).statusCode
        if status == 404 && answer.code == "license_not_found" { return ("refused: not found", []) }
        if status == 409 && answer.code == "no_seat_left" { return ("refused: no seat left", []) }
        if status == 409 && answer.code == "license_expired" { return ("refused: expired", []) }
        guard let documents = answer.data else { throw NotProven(reason: "there is no answer of a holder") }
        let (verdict, version, entitlements) = try check(documents, key, nonce: nonce, seenVersion: seen)
        try? "\(version)".write(to: file, atomically: true, encoding: .utf8)
        return (verdict, entitlements)
    } catch {
        FileHandle.standardError.write(Data("not proven: \(error)\n".utf8))
        return ("undetermined", [])
    }
}

/// All retries send the same idempotency key, so that the use counts once.
func countUse(_ key: String) async throws -> String {
    let idempotencyKey = UUID().uuidString
    var put = request("/api/v2/license/usage", key)
    put.httpMethod = "PUT"
    put.setValue(idempotencyKey, forHTTPHeaderField: "Idempotency-Key")
    put.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
    put.httpBody = put.url!.query!.data(using: .utf8)
    put.url = URL(string: base + "/api/v2/license/usage")
    let end = Date() + deadline
    var wait: UInt64 = 100_000_000
    while Date() < end {
        if let (status, answer) = try? await send(put) {
            if status == 200, let license = answer.data { return String(license.uses) }
            if status < 500 && ![408, 409, 429].contains(status) { return "refused (\(answer.code ?? "\(status)"))" }
        }
        try await Task.sleep(nanoseconds: wait)
        wait = min(2 * wait, 2_000_000_000)
    }
    return "later, under \(idempotencyKey)"
}

/// The final verdict: a missing answer is not a "no", and only "disabled" revokes at once.
func remembered(_ verdict: String, _ end: Date?) -> String {
    let now = Date().timeIntervalSince1970
    if verdict == "valid" || verdict == "refused: disabled" {
        // No license is valid after its end.
        let until = min(now + grace, end?.timeIntervalSince1970 ?? .infinity)
        try? "\(Int(until)) \(verdict)".write(to: file, atomically: true, encoding: .utf8)
    }
    guard verdict == "undetermined", let line = try? String(contentsOf: file, encoding: .utf8) else { return verdict }
    let parts = line.split(separator: " ", maxSplits: 1)
    if parts.last == "refused: disabled" { return "refused: disabled" }
    if parts.last == "valid", let until = parts.first.flatMap({ TimeInterval($0) }), now <= until { return "valid (last known)" }
    return verdict
}

guard CommandLine.arguments.count == 2 else {
    FileHandle.standardError.write(Data("usage: LicenseCheck LICENSE-KEY\n".utf8))
    exit(2)
}
let key = CommandLine.arguments[1]
var (verdict, entitlements): (String, [String]) = ("", [])
if roots.isEmpty {
    let (said, end) = await verify(key)
    verdict = remembered(said, end)
} else {
    (verdict, entitlements) = await leased(key)
}
print(verdict)
if !entitlements.isEmpty { print("entitlements: \(entitlements.joined(separator: " "))") }
if verdict == "valid" { print("uses: \(try await countUse(key))") }
exit(verdict.hasPrefix("valid") ? 0 : verdict.hasPrefix("refused") ? 1 : 2)
