//! Checks a license key when it starts, and counts a use: license-check LICENSE-KEY

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, process, thread};

use curl::easy::{Easy, List};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(10);
const GRACE_S: u64 = 14 * 24 * 3600;

enum Ask<'a> {
    Verify,
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
    let form = format!("license_key={}", easy.url_encode(license_key.as_bytes()));
    let mut headers = List::new();
    let secret = env::var("LATCHKEY_SECRET").unwrap_or_default();
    headers.append(&format!("product-secret-key: {secret}")).ok()?;
    headers.append("Accept: application/problem+json, application/json").ok()?;
    match ask {
        Ask::Verify => easy.url(&format!("{base}/api/v2/license/verify?{form}")).ok()?,
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

fn verify(license_key: &str) -> &'static str {
    match call(Ask::Verify, license_key) {
        Some((200, body)) if body["data"]["enabled"] == true => "valid",
        Some((200, body)) if body["data"]["enabled"] == false => "refused: disabled",
        Some((404, body)) if body["code"] == "license_not_found" => "refused: not found",
        _ => "undetermined",
    }
}

/// All retries send the same idempotency key, so that the use counts once.
fn count_use(license_key: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let idempotency_key = format!("{}-{}", since.as_nanos(), process::id());
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
fn remembered(verdict: &'static str) -> &'static str {
    let file = environment("LATCHKEY_LAST_KNOWN", "last-known");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if verdict == "valid" || verdict == "refused: disabled" {
        if let Err(error) = fs::write(&file, format!("{now} {verdict}")) {
            eprintln!("{file}: {error}");
        }
    } else if verdict == "undetermined" {
        let line = fs::read_to_string(&file).unwrap_or_default();
        let (at, last) = line.split_once(' ').unwrap_or_default();
        if last == "refused: disabled" {
            return "refused: disabled";
        }
        if last == "valid" && at.parse().is_ok_and(|at: u64| now.saturating_sub(at) < GRACE_S) {
            return "valid (last known)";
        }
    }
    verdict
}

fn environment(name: &str, otherwise: &str) -> String {
    env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or(otherwise.into())
}

fn main() {
    let Some(license_key) = env::args().nth(1) else {
        eprintln!("usage: license-check LICENSE-KEY");
        process::exit(2);
    };
    let verdict = remembered(verify(&license_key));
    println!("{verdict}");
    if verdict == "valid" {
        println!("uses: {}", count_use(&license_key));
    }
    process::exit(match verdict {
        "valid" | "valid (last known)" => 0,
        "undetermined" => 2,
        _ => 1,
    });
}
