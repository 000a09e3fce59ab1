//! Checks a license key when it starts, and counts a use: license-check LICENSE-KEY

mod lease;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};

use chrono::DateTime;
use curl::easy::{Easy, List};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(10);
const GRACE_S: i64 = 14 * 24 * 3600;

enum Ask<'a> {
    Verify,
    /// Has this nonce.
    Lease(&'a str),
    /// Has this idempotency key.
    Use(&'a str),
}

/// Sends one request. `None`: there is no readable answer.
fn call(ask: Ask, license_key: &str) -> Option<(u32, Value)> {
    let mut easy = Easy::new();
    let url = environment("LATCHKEY_URL", "http://127.0.0.1:8787");
    let base = match url.strip_prefix("unix:") {
        Some(path) => {
            easy.unix_socket(path).ok()?;
            "http://localhost"
        }
        None => &url,
    };
    let product = easy.url_encode(lease::PRODUCT.as_bytes());
    let form = format!("license_key={}&product_key={product}", easy.url_encode(license_key.as_bytes()));
    let mut headers = List::new();
    let secret = env::var("LATCHKEY_SECRET").unwrap_or_default();
    headers.append(&format!("product-secret-key: {secret}")).ok()?;
    headers.append("Accept: application/problem+json, application/json").ok()?;
    match ask {
        Ask::Verify => easy.url(&format!("{base}/api/v2/license/verify?{form}")).ok()?,
        Ask::Lease(nonce) => easy.url(&format!("{base}/agent/v1/lease?{form}&nonce={nonce}")).ok()?,
        Ask::Use(idempotency_key) => {
            easy.url(&format!("{base}/api/v2/license/usage")).ok()?;
            easy.post_fields_copy(form.as_bytes()).ok()?;
            easy.custom_request("PUT").ok()?;
            headers.append(&format!("Idempotency-Key: {idempotency_key}")).ok()?;
        }
    }
    easy.http_headers(headers).ok()?;
    easy.timeout(TIMEOUT).ok()?;
    // A proxy of the environment would see the secret, and cannot reach the agent of this machine.
    easy.proxy("").ok()?;
    let mut body = Vec::new();
    {
        let mut transfer = easy.transfer();
        transfer
            .write_function(|data| {
                body.extend_from_slice(data);
                Ok(data.len())
            })
            .ok()?;
        transfer.perform().ok()?;
    }
    Some((easy.response_code().ok()?, serde_json::from_slice(&body).ok()?))
}

/// The verdict, and the end of a license that ends, in seconds since 1970.
fn verify(license_key: &str) -> (&'static str, Option<i64>) {
    match call(Ask::Verify, license_key) {
        Some((200, body)) if body["data"]["enabled"] == true => ("valid", end_of(&body["data"])),
        Some((200, body)) if body["data"]["enabled"] == false => ("refused: disabled", None),
        Some((404, body)) if body["code"] == "license_not_found" => ("refused: not found", None),
        _ => ("undetermined", None),
    }
}

fn end_of(license: &Value) -> Option<i64> {
    let end = license["grace_until"].as_str().or(license["expires_at"].as_str())?;
    Some(DateTime::parse_from_rfc3339(end).ok()?.timestamp())
}

/// What the vendor has signed for this device: another program on the port cannot say it. And what that unlocks.
fn leased(license_key: &str) -> (String, Vec<String>) {
    let nonce = random();
    let file = environment("LATCHKEY_LAST_KNOWN", "last-known");
    // The version of the keys that was seen last. Keys that the vendor has retired have a lower one.
    let seen = fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let checked = match call(Ask::Lease(&nonce), license_key) {
        Some((404, body)) if body["code"] == "license_not_found" => return ("refused: not found".into(), vec![]),
        Some((409, body)) if body["code"] == "no_seat_left" => return ("refused: no seat left".into(), vec![]),
        Some((409, body)) if body["code"] == "license_expired" => return ("refused: expired".into(), vec![]),
        Some((_, body)) => lease::check(&body["data"], license_key, &nonce, seen),
        None => Err("there is no answer".into()),
    };
    match checked {
        Ok((verdict, entitlements, version)) => {
            if let Err(error) = fs::write(&file, version.to_string()) {
                eprintln!("{file}: {error}");
            }
            (verdict, entitlements)
        }
        Err(reason) => {
            eprintln!("not proven: {reason}");
            ("undetermined".into(), vec![])
        }
    }
}

/// All retries send the same idempotency key, so that the use counts once.
fn count_use(license_key: &str) -> String {
    let idempotency_key = random();
    let end = Instant::now() + DEADLINE;
    let mut wait = Duration::from_millis(100);
    while Instant::now() < end {
        match call(Ask::Use(&idempotency_key), license_key) {
            Some((200, body)) if body["data"]["uses"].is_u64() => return body["data"]["uses"].to_string(),
            Some((200 | 408 | 409 | 429 | 500.., _)) | None => {}
            Some((_, body)) => return format!("refused ({})", body["code"]),
        }
        thread::sleep(wait);
        wait = (2 * wait).min(Duration::from_secs(2));
    }
    format!("later, under {idempotency_key}")
}

/// The final verdict: a missing answer is not a "no", and only "disabled" revokes at once.
fn remembered((verdict, end): (&'static str, Option<i64>)) -> &'static str {
    let file = environment("LATCHKEY_LAST_KNOWN", "last-known");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    if verdict == "valid" || verdict == "refused: disabled" {
        let until = end.unwrap_or(i64::MAX).min(now + GRACE_S);
        if let Err(error) = fs::write(&file, format!("{until} {verdict}")) {
            eprintln!("{file}: {error}");
        }
    } else if verdict == "undetermined" {
        let line = fs::read_to_string(&file).unwrap_or_default();
        let (until, last) = line.split_once(' ').unwrap_or_default();
        if last == "refused: disabled" {
            return "refused: disabled";
        }
        if last == "valid" && until.parse().is_ok_and(|until: i64| now <= until) {
            return "valid (last known)";
        }
    }
    verdict
}

fn random() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn environment(name: &str, otherwise: &str) -> String {
    env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or(otherwise.into())
}

fn main() {
    let Some(license_key) = env::args().nth(1) else {
        eprintln!("usage: license-check LICENSE-KEY");
        process::exit(2);
    };
    let has_roots = !lease::ROOTS.is_empty();
    let (verdict, entitlements) =
        if has_roots { leased(&license_key) } else { (remembered(verify(&license_key)).into(), vec![]) };
    println!("{verdict}");
    if !entitlements.is_empty() {
        println!("entitlements: {}", entitlements.join(" "));
    }
    if verdict == "valid" {
        println!("uses: {}", count_use(&license_key));
    }
    process::exit(match verdict.as_str() {
        "valid" | "valid (last known)" => 0,
        "undetermined" => 2,
        _ => 1,
    });
}
