"""Checks the lease of a license key with the public root keys of the vendor."""

import hashlib
import json
import re
from base64 import urlsafe_b64encode

import jwt

# What `latchkey lease setup` prints. A program that reads these from a file can be given others.
ISSUER = "https://licenses.example.com"
PRODUCT = "RGsF"
ROOTS = []  # while there are none, the program asks an agent, and believes what answers on its port
MIN_KEYS_VERSION = 1

DEVICE = {"kty", "crv", "x", "y"}
KEY = re.compile("[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}", re.IGNORECASE)


class NotProven(Exception):
    """The answer proves nothing: it is not a "no"."""


def sha256(text):
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def thumbprint(jwk):
    """The name of a key (RFC 7638)."""
    return sha256(json.dumps({name: jwk[name] for name in ("crv", "kty", "x", "y")}, separators=(",", ":")))


def opened(document, typ, key_of, **expected):
    """The claims of a document that the right key has signed, with exactly the header of its type."""
    header = jwt.get_unverified_header(document)
    name = "jwk" if "proof" in typ else "kid"
    if header != {"alg": "ES256", "typ": typ, name: header.get(name)}:
        raise NotProven(f"the header is not the one of {typ}")
    key = jwt.PyJWK(key_of(header[name]), algorithm="ES256")
    return jwt.decode(document, key, algorithms=["ES256"], options={"strict_aud": True}, **expected)


def check(answer, license_key, nonce, seen_version=0):
    """The verdict, the version of the keys, to be passed as `seen_version` the next time, and what the license unlocks."""
    if not isinstance(license_key, str) or not isinstance(nonce, str) or not nonce:
        raise ValueError("license_key and nonce must be texts, and nonce not empty")
    if not isinstance(seen_version, int):
        raise ValueError("seen_version must be a whole number")
    try:
        roots = {thumbprint(root): root for root in ROOTS}
        statement = opened(answer["keys"], "latchkey-keys+jwt", roots.__getitem__, issuer=ISSUER)
        if statement["version"] < max(MIN_KEYS_VERSION, seen_version):
            raise NotProven("the key statement is older than one that was seen")
        keys = {thumbprint(key["jwk"]): key for key in statement["keys"]}
        is_lease = "lease" in answer
        signed, typ = (answer["lease"], "lease") if is_lease else (answer["notice"], "notice")
        expected = {"audience": PRODUCT} if is_lease else {}
        claims = opened(signed, f"latchkey-{typ}+jwt", lambda kid: keys[kid]["jwk"], issuer=ISSUER, **expected)
        not_after = keys[jwt.get_unverified_header(signed)["kid"]]["not_after"]
        if claims["exp" if is_lease else "issued_at"] > not_after:
            raise NotProven("it is valid for longer than its key")
        license_key = license_key.strip()
        issued_for = claims["license"]["license_key"] if is_lease else claims["license_key"]
        if issued_for != (license_key.upper() if KEY.fullmatch(license_key) else license_key):
            raise NotProven("it is for another license key")
        if not is_lease and claims["state"] not in ("disabled", "ended", "blocked", "replaced"):
            raise NotProven("the notice has another state")
        if is_lease and claims["license"]["enabled"] is not True:
            raise NotProven("the license is not enabled")
        if claims.get("nonce") != nonce or "proof" in answer:
            check_proof(answer["proof"], signed, claims["cnf"]["jkt"], nonce)
        if is_lease:
            return "valid", statement["version"], claims["license"].get("entitlements", [])
        # A license that has ended is disabled, and says when it ended.
        return f"refused: {'expired' if 'expired_at' in claims else claims['state']}", statement["version"], []
    except (jwt.PyJWTError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise NotProven(f"{type(error).__name__}: {error}") from error


def check_proof(proof, document, device, nonce):
    """The device that the document names has signed the nonce: this is no recorded answer, and none for another device."""

    def key_of(jwk):
        if jwk.keys() != DEVICE or thumbprint(jwk) != device:
            raise NotProven("the proof is signed by another device")
        return jwk

    claims = opened(proof, "latchkey-proof+jwt", key_of, audience=PRODUCT)
    if claims["nonce"] != nonce or claims["lease_hash"] != sha256(document.rpartition(".")[0]):
        raise NotProven("the proof is for another nonce or another document")
