"""Checks a license key when it starts, and counts a use: python3 license_check.py LICENSE-KEY"""

import http.client
import json
import math
import os
import secrets
import socket
import sys
import threading
import time
import uuid
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import lease

URL = os.environ.get("LATCHKEY_URL") or "http://127.0.0.1:8787"
SECRET = os.environ.get("LATCHKEY_SECRET", "")
LAST_KNOWN = Path(os.environ.get("LATCHKEY_LAST_KNOWN") or "last-known")
GRACE_S = 14 * 24 * 3600
TIMEOUT_S = 5
DEADLINE_S = 10
# Deeply nested JSON throws a RecursionError.
NO_ANSWER = (OSError, http.client.HTTPException, ValueError, RecursionError)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def connect():
    """A connection as the address says: a secret for TLS never goes out in the clear."""
    address = urlsplit(URL)
    if address.scheme == "unix":
        return UnixConnection(URL.removeprefix("unix:"), TIMEOUT_S)
    if address.scheme == "https":
        return http.client.HTTPSConnection(address.netloc, timeout=TIMEOUT_S)
    if address.scheme == "http":
        return http.client.HTTPConnection(address.netloc, timeout=TIMEOUT_S)
    raise ValueError(f"LATCHKEY_URL is no address: {URL}")


def call(method, path, body=None, headers=None):
    """One request; gives status and JSON body. Raises one of NO_ANSWER."""
    connection = connect()
    sent = {"product-secret-key": SECRET, "accept": "application/problem+json, application/json", **(headers or {})}
    connection.connect()
    # The time limit of the connection covers each read: an answer may arrive byte by byte, without end.
    timer = threading.Timer(TIMEOUT_S, connection.sock.shutdown, [socket.SHUT_RDWR])
    timer.start()
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return answer.status, parse(answer.read())
    finally:
        timer.cancel()
        connection.close()


def parse(text):
    body = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError("this is no agent")
    return body


def verify(key):
    """The verdict, and until when a license that ends is valid."""
    try:
        status, body = call("GET", "/api/v2/license/verify?" + urlencode({"license_key": key}))
    except NO_ANSWER:
        return "undetermined", None
    if status == 200 and isinstance(body.get("data"), dict):
        license = body["data"]
        enabled, end = license.get("enabled"), license.get("grace_until") or license.get("expires_at")
        return "valid" if enabled is True else "refused: disabled" if enabled is False else "undetermined", end
    if status == 404 and body.get("code") == "license_not_found":
        return "refused: not found", None
    return "undetermined", None


REFUSALS = {
    "404 license_not_found": "refused: not found",
    "409 no_seat_left": "refused: no seat left",
    "409 license_expired": "refused: expired",
}


def leased(key):
    """What the vendor has signed for this device: another program on the port cannot say it. And what that unlocks."""
    nonce = secrets.token_urlsafe(32)
    query = urlencode({"license_key": key, "product_key": lease.PRODUCT, "nonce": nonce})
    try:
        status, body = call("GET", "/agent/v1/lease?" + query)
        refused = REFUSALS.get(f"{status} {body.get('code')}")
        if refused:
            return refused, []
        verdict, version, entitlements = lease.check(body.get("data"), key, nonce, seen_version())
    except (*NO_ANSWER, lease.NotProven) as error:
        print(f"not proven: {error}", file=sys.stderr)
        return "undetermined", []
    seen_version(version)
    return verdict, entitlements


def seen_version(version=None):
    """The version of the keys that was seen last. Keys that the vendor has retired have a lower one."""
    try:
        if version is not None:
            LAST_KNOWN.write_text(str(version))
        return int(LAST_KNOWN.read_text())
    except (OSError, ValueError):
        return 0


def remembered(verdict, end):
    """What counts in the end: no answer is no "no", and only "disabled" revokes at once."""
    now = int(time.time())
    try:
        if verdict in ("valid", "refused: disabled"):
            # No license is valid after its end.
            until = min(now + GRACE_S, datetime.fromisoformat(end).timestamp() if end else math.inf)
            LAST_KNOWN.write_text(f"{int(until)} {verdict}")
        if verdict == "undetermined" and LAST_KNOWN.exists():
            until, _, last = LAST_KNOWN.read_text().partition(" ")
            if last == "refused: disabled":
                return last
            if last == "valid" and now <= int(until):
                return "valid (last known)"
    except (OSError, ValueError) as error:
        print(f"{LAST_KNOWN}: {error}", file=sys.stderr)  # it stands in the way of no verdict
    return verdict


def count_use(key):
    """The key of the request is made once and kept across retries, so that the use counts once."""
    idempotency_key = str(uuid.uuid4())
    headers = {"idempotency-key": idempotency_key, "content-type": "application/x-www-form-urlencoded"}
    form = urlencode({"license_key": key, "product_key": lease.PRODUCT})
    deadline, wait = time.monotonic() + DEADLINE_S, 0.1
    while time.monotonic() < deadline:
        try:
            status, body = call("PUT", "/api/v2/license/usage", form, headers)
            if status == 200:
                return str(body["data"]["uses"])
            if status not in (408, 409, 429) and status < 500:
                return f"refused ({body.get('code', status)})"
        except (*NO_ANSWER, LookupError, TypeError):
            pass  # no answer, or not one of an agent: it may have been counted
        time.sleep(wait)
        wait = min(2 * wait, 2)
    return f"later, under {idempotency_key}"


def main():
    if len(sys.argv) != 2:
        sys.stderr.write("usage: license_check.py LICENSE-KEY\n")
        return 2
    key = sys.argv[1]
    verdict, entitlements = leased(key) if lease.ROOTS else (remembered(*verify(key)), [])
    print(verdict)
    if entitlements:
        print("entitlements:", *entitlements)
    if verdict == "valid":
        print("uses:", count_use(key))
    return 0 if verdict.startswith("valid") else 1 if verdict.startswith("refused") else 2


if __name__ == "__main__":
    sys.exit(main())
