//! Checks the lease of a license key with the public root keys of the vendor.

use base64::{engine::general_purpose::URL_SAFE_NO_PAD, Engine};
use jsonwebtoken::{decode, Algorithm, DecodingKey, Validation};
use serde_json::{json, Value};
use sha2::{Digest, Sha256};

// What `latchkey lease setup` prints. A program that reads these from a file can be given others.
const ISSUER: &str = "https://licenses.example.com";
pub const PRODUCT: &str = "RGsF";
const MIN_KEYS_VERSION: u64 = 1;
/// `x` and `y` of each. While there are none, the program asks an agent, and believes what answers on its port.
pub const ROOTS: &[[&str; 2]] = &[];

/// The verdict of an answer, what the license unlocks, and the version of the keys. An error proves nothing: it is not a "no".
pub fn check(answer: &Value, key: &str, nonce: &str, seen_version: u64) -> Result<(String, Vec<String>, u64), String> {
    ensure(!nonce.is_empty(), "this program must pass a nonce")?;
    let roots = ROOTS.iter().map(|[x, y]| json!({"jwk": {"kty": "EC", "crv": "P-256", "x": x, "y": y}}));
    let (statement, _) = open(&answer["keys"], "latchkey-keys+jwt", &named(roots.collect()))?;
    let version = statement["version"].as_u64().ok_or("the key statement has no version")?;
    ensure(version >= seen_version.max(MIN_KEYS_VERSION), "the key statement is older than one that was seen")?;
    let signing = named(statement["keys"].as_array().cloned().unwrap_or_default());
    let is_lease = answer["lease"].is_string();
    let (typ, signed) = if is_lease { ("lease", &answer["lease"]) } else { ("notice", &answer["notice"]) };
    let (claims, by) = open(signed, &format!("latchkey-{typ}+jwt"), &signing)?;
    let until = claims[if is_lease { "exp" } else { "issued_at" }].as_u64();
    ensure(until.is_some() && until <= by["not_after"].as_u64(), "it is valid for longer than its key")?;
    let issued_for = if is_lease { &claims["license"]["license_key"] } else { &claims["license_key"] };
    ensure(issued_for == &stored(key), "it is for another license key")?;
    let state = claims["state"].as_str().unwrap_or_default();
    let is_state = ["disabled", "ended", "blocked", "replaced"].contains(&state);
    ensure(is_lease || is_state, "the notice has another state")?;
    ensure(!is_lease || claims["license"]["enabled"] == true, "the license is not enabled")?;
    if claims["nonce"] != nonce || answer["proof"].is_string() {
        // The device that the document names has signed the nonce: this is no recorded answer, and none for another device.
        let document = signed.as_str().unwrap_or_default();
        let device = |header: &Value| {
            let key = json!({ "jwk": header["jwk"] });
            let is_exact = header["jwk"].as_object().is_some_and(|members| members.len() == 4);
            (is_exact && claims["cnf"]["jkt"] == thumbprint(&key["jwk"])).then_some(key)
        };
        let (proof, _) = open(&answer["proof"], "latchkey-proof+jwt", &device)?;
        let hash = sha256(document.rsplit_once('.').unwrap_or_default().0);
        ensure(proof["nonce"] == nonce && proof["lease_hash"] == hash, "the proof is for another nonce or document")?;
    }
    let entitlements = claims["license"]["entitlements"].as_array().cloned().unwrap_or_default();
    let entitlements = entitlements.iter().filter_map(|each| each.as_str().map(String::from)).collect();
    // A license that has ended is disabled, and says when it ended.
    let state = if claims["expired_at"].is_u64() { "expired" } else { state };
    Ok((if is_lease { String::from("valid") } else { format!("refused: {state}") }, entitlements, version))
}

/// The claims of a document with exactly the header of its type, and the key that has signed it.
fn open(document: &Value, typ: &str, key_of: &dyn Fn(&Value) -> Option<Value>) -> Result<(Value, Value), String> {
    let text = document.as_str().ok_or(format!("there is no {typ}"))?;
    let header = URL_SAFE_NO_PAD.decode(text.split('.').next().unwrap_or_default()).map_err(|error| error.to_string())?;
    let header: Value = serde_json::from_slice(&header).map_err(|error| error.to_string())?;
    let is_exact = header.as_object().is_some_and(|members| members.len() == 3);
    ensure(is_exact && header["typ"] == typ, &format!("the header is not the one of {typ}"))?;
    let key = key_of(&header).ok_or("the key that has signed is not known")?;
    let point = |name: &str| key["jwk"][name].as_str().unwrap_or_default();
    let verifying = DecodingKey::from_ec_components(point("x"), point("y")).map_err(|error| error.to_string())?;
    let mut validation = Validation::new(Algorithm::ES256);
    validation.leeway = 0;
    let (needed, has_audience): (&[&str], bool) = match typ {
        "latchkey-lease+jwt" => (&["exp", "iss", "aud"], true),
        "latchkey-proof+jwt" => (&["aud"], true),
        _ => (&["iss"], false),
    };
    validation.set_required_spec_claims(needed);
    validation.validate_exp = typ == "latchkey-lease+jwt";
    validation.validate_aud = has_audience;
    validation.set_audience(&[PRODUCT]);
    validation.set_issuer(&[ISSUER]);
    let claims = decode::<Value>(text, &verifying, &validation).map_err(|error| error.to_string())?.claims;
    ensure(!has_audience || claims["aud"].is_string(), "there is a list of audiences")?;
    Ok((claims, key))
}

/// Finds the key that a header names.
fn named(keys: Vec<Value>) -> impl Fn(&Value) -> Option<Value> {
    move |header| keys.iter().find(|key| header["kid"] == thumbprint(&key["jwk"])).cloned()
}

/// The name of a key (RFC 7638).
fn thumbprint(jwk: &Value) -> String {
    sha256(&format!(r#"{{"crv":{},"kty":{},"x":{},"y":{}}}"#, jwk["crv"], jwk["kty"], jwk["x"], jwk["y"]))
}

fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(text))
}

/// The license key as the issuer stores it: keys of the usual form in capital letters.
fn stored(key: &str) -> String {
    let key = key.trim();
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() && !"01iIoO".contains(letter);
    let groups: Vec<&str> = key.split('-').collect();
    let is_usual = groups.len() == 4 && groups.iter().all(|group| group.len() == 5 && group.chars().all(is_letter));
    if is_usual { key.to_uppercase() } else { key.into() }
}

fn ensure(is_true: bool, otherwise: &str) -> Result<(), String> {
    if is_true { Ok(()) } else { Err(otherwise.into()) }
}
