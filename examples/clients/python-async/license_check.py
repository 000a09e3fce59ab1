"""Checks a license key when it starts, and counts a use: python3 license_check.py LICENSE-KEY"""

import asyncio
import math
import os
import secrets
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path

import aiohttp
import lease

URL = os.environ.get("LATCHKEY_URL") or "http://127.0.0.1:8787"
IS_SOCKET = URL.startswith("unix:")
BASE = "http://localhost" if IS_SOCKET else URL
SECRET = os.environ.get("LATCHKEY_SECRET", "")
LAST_KNOWN = Path(os.environ.get("LATCHKEY_LAST_KNOWN") or "last-known")
GRACE_S = 14 * 24 * 3600
DEADLINE_S = 10
# The socket throws an OSError, and deeply nested JSON a RecursionError.
NO_ANSWER = (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError, RecursionError)


def session():
    """One session for the whole program, over TCP or the socket."""
    return aiohttp.ClientSession(
        connector=aiohttp.UnixConnector(URL.removeprefix("unix:")) if IS_SOCKET else None,
        headers={"product-secret-key": SECRET, "accept": "application/problem+json, application/json"},
        timeout=aiohttp.ClientTimeout(total=5),
    )


async def read(answer):
    body = await answer.json(content_type=None)
    if not isinstance(body, dict):
        raise ValueError("this is no agent")
    return body


async def verify(http, key):
    """The verdict, and until when a license that ends is valid."""
    try:
        url, sought = f"{BASE}/api/v2/license/verify", {"license_key": key}
        async with http.get(url, params=sought, allow_redirects=False) as answer:
            body = await read(answer)
    except NO_ANSWER:
        return "undetermined", None
    if answer.status == 200 and isinstance(body.get("data"), dict):
        license = body["data"]
        enabled, end = license.get("enabled"), license.get("grace_until") or license.get("expires_at")
        return "valid" if enabled is True else "refused: disabled" if enabled is False else "undetermined", end
    if answer.status == 404 and body.get("code") == "license_not_found":
        return "refused: not found", None
    return "undetermined", None


REFUSALS = {
    "404 license_not_found": "refused: not found",
    "409 no_seat_left": "refused: no seat left",
    "409 license_expired": "refused: expired",
}


async def leased(http, key):
    """What the vendor has signed for this device: another program on the port cannot say it. And what that unlocks."""
    nonce = secrets.token_urlsafe(32)
    sought = {"license_key": key, "product_key": lease.PRODUCT, "nonce": nonce}
    try:
        async with http.get(f"{BASE}/agent/v1/lease", params=sought, allow_redirects=False) as answer:
            body = await read(answer)
        refused = REFUSALS.get(f"{answer.status} {body.get('code')}")
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


async def count_use(http, key):
    """The key of the request is made once and kept across retries, so that the use counts once."""
    idempotency_key = str(uuid.uuid4())
    deadline, wait = time.monotonic() + DEADLINE_S, 0.1
    while time.monotonic() < deadline:
        try:
            url, form = f"{BASE}/api/v2/license/usage", {"license_key": key, "product_key": lease.PRODUCT}
            headers = {"idempotency-key": idempotency_key}
            async with http.put(url, data=form, headers=headers, allow_redirects=False) as answer:
                body = await read(answer)
            if answer.status == 200:
                return str(body["data"]["uses"])
            if answer.status not in (408, 409, 429) and answer.status < 500:
                return f"refused ({body.get('code', answer.status)})"
        except (*NO_ANSWER, LookupError, TypeError):
            pass  # no answer, or not one of an agent: it may have been counted
        await asyncio.sleep(wait)
        wait = min(2 * wait, 2)
    return f"later, under {idempotency_key}"


async def main():
    if len(sys.argv) != 2:
        sys.stderr.write("usage: license_check.py LICENSE-KEY\n")
        return 2
    key = sys.argv[1]
    async with session() as http:
        verdict, entitlements = await leased(http, key) if lease.ROOTS else (remembered(*await verify(http, key)), [])
        print(verdict)
        if entitlements:
            print("entitlements:", *entitlements)
        if verdict == "valid":
            print("uses:", await count_use(http, key))
    return 0 if verdict.startswith("valid") else 1 if verdict.startswith("refused") else 2


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
