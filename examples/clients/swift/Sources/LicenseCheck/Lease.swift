// Checks the lease of a license key with the public root keys of the vendor.
import Crypto
import Foundation

// What `latchkey lease setup` prints. A program that reads these from a file can be given others.
let issuer = "https://licenses.example.com"
let product = "RGsF"
let minKeysVersion = 1
/// While there are none, the program asks an agent, and believes what answers on its port.
let roots: [Jwk] = []

struct Jwk: Codable {
    var kty = "EC"
    var crv = "P-256"
    let x: String
    let y: String

    /// The name of the key (RFC 7638).
    var thumbprint: String { sha256("{\"crv\":\"\(crv)\",\"kty\":\"\(kty)\",\"x\":\"\(x)\",\"y\":\"\(y)\"}") }
}

struct SignedKey: Decodable {
    let jwk: Jwk
    let not_after: Int
}

struct Documents: Decodable {
    let lease: String?
    let notice: String?
    let keys: String
    let proof: String?
}

struct Statement: Decodable {
    let iss: String
    let version: Int
    let keys: [SignedKey]
}

struct LeaseClaims: Decodable {
    struct License: Decodable {
        let license_key: String
        let enabled: Bool
        let entitlements: [String]?
    }
    struct Device: Decodable { let jkt: String }
    let iss: String
    let aud: String
    let exp: Int
    let license: License
    let cnf: Device
    let nonce: String?
}

struct NoticeClaims: Decodable {
    enum State: String, Decodable { case disabled, ended, blocked, replaced }
    let iss: String
    let license_key: String
    let state: State
    let issued_at: Int
    let expired_at: Int?
    let cnf: LeaseClaims.Device
}

struct ProofClaims: Decodable {
    let aud: String
    let nonce: String
    let lease_hash: String
}

/// The answer proves nothing: this is not a "no".
struct NotProven: Error { let reason: String }

/// Gives the verdict of an answer, the version of its keys, and what the license unlocks.
func check(_ answer: Documents, _ typed: String, nonce: String, seenVersion: Int) throws -> (String, Int, [String]) {
    try ensure(!nonce.isEmpty, "this program must pass a nonce")
    let signers = roots.map { SignedKey(jwk: $0, not_after: .max) }
    let (statement, _): (Statement, SignedKey) = try opened(answer.keys, "latchkey-keys+jwt", named(signers))
    try ensure(statement.iss == issuer, "the key statement is of another issuer")
    try ensure(statement.version >= max(minKeysVersion, seenVersion), "the key statement is older than one that was seen")
    var key = typed.trimmingCharacters(in: .whitespacesAndNewlines)
    let group = "[A-HJ-NP-Z2-9]{5}"
    if key.range(of: "^\(group)(-\(group)){3}$", options: [.regularExpression, .caseInsensitive]) != nil { key = key.uppercased() }
    guard let signed = answer.lease else {
        let (notice, by): (NoticeClaims, SignedKey) = try opened(answer.notice ?? "", "latchkey-notice+jwt", named(statement.keys))
        try ensure(notice.iss == issuer && notice.license_key == key, "the notice is for another license key")
        try ensure(notice.issued_at <= by.not_after, "its key had ended")
        try checkProof(answer.proof ?? "", of: answer.notice ?? "", device: notice.cnf.jkt, nonce: nonce)
        // A license that has ended is disabled, and says when it ended.
        let reason = notice.expired_at == nil ? notice.state.rawValue : "expired"
        return ("refused: \(reason)", statement.version, [])
    }
    let (lease, by): (LeaseClaims, SignedKey) = try opened(signed, "latchkey-lease+jwt", named(statement.keys))
    try ensure(lease.iss == issuer && lease.aud == product, "the lease is for another product")
    try ensure(lease.license.license_key == key, "the lease is for another license key")
    try ensure(lease.license.enabled, "the license is not enabled")
    try ensure(lease.exp <= by.not_after, "the lease is valid for longer than its key")
    try ensure(Date().timeIntervalSince1970 < Double(lease.exp), "the lease has expired")
    if lease.nonce != nonce || answer.proof != nil {
        try checkProof(answer.proof ?? "", of: signed, device: lease.cnf.jkt, nonce: nonce)
    }
    return ("valid", statement.version, lease.license.entitlements ?? [])
}

/// The device that the document names has signed the nonce: this is no recorded answer, and none for another device.
func checkProof(_ text: String, of document: String, device: String, nonce: String) throws {
    let (proof, _): (ProofClaims, SignedKey) = try opened(text, "latchkey-proof+jwt") { header in
        guard let jwk = header["jwk"] as? [String: String], jwk.count == 4, let x = jwk["x"], let y = jwk["y"] else { return nil }
        let key = Jwk(kty: jwk["kty"] ?? "", crv: jwk["crv"] ?? "", x: x, y: y)
        return key.thumbprint == device ? SignedKey(jwk: key, not_after: .max) : nil
    }
    let hash = sha256(String(document[..<document.lastIndex(of: ".")!]))
    try ensure(proof.aud == product && proof.nonce == nonce && proof.lease_hash == hash, "the proof is for another nonce or document")
}

/// Gives the claims of a document with exactly the header of its type, and the key that has signed it.
func opened<Claims: Decodable>(
    _ document: String, _ typ: String, _ keyOf: ([String: Any]) -> SignedKey?
) throws -> (Claims, SignedKey) {
    let parts = document.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    try ensure(parts.count == 3, "there is no \(typ)")
    let header = try JSONSerialization.jsonObject(with: decode(parts[0])) as? [String: Any] ?? [:]
    let isExact = header.count == 3 && header["alg"] as? String == "ES256" && header["typ"] as? String == typ
    guard isExact, let key = keyOf(header) else { throw NotProven(reason: "the header is not the one of \(typ), or names an unknown key") }
    let point = try decode(key.jwk.x) + decode(key.jwk.y)
    try ensure(key.jwk.kty == "EC" && key.jwk.crv == "P-256" && point.count == 64, "the key is not one of P-256")
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: decode(parts[2]))
    let isSigned = try P256.Signing.PublicKey(rawRepresentation: point)
        .isValidSignature(signature, for: Data("\(parts[0]).\(parts[1])".utf8))
    try ensure(isSigned, "the signature is wrong")
    return (try JSONDecoder().decode(Claims.self, from: decode(parts[1])), key)
}

func named(_ keys: [SignedKey]) -> ([String: Any]) -> SignedKey? {
    { header in keys.first { $0.jwk.thumbprint == header["kid"] as? String } }
}

func decode(_ text: String) throws -> Data {
    let plain = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
    guard !text.contains("="), let data = Data(base64Encoded: plain + String(repeating: "=", count: (4 - text.count % 4) % 4)) else {
        throw NotProven(reason: "it is not base64url")
    }
    return data
}

func sha256(_ text: String) -> String {
    Data(SHA256.hash(data: Data(text.utf8))).base64EncodedString()
        .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
}

func ensure(_ isTrue: Bool, _ otherwise: String) throws {
    if !isTrue { throw NotProven(reason: otherwise) }
}
