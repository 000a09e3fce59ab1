"""A command line tool that uses requests. Second version of the API."""
import os
import pathlib
import sys

import requests

API = os.environ.get("LICENSE_API", "https://api.example.com")
ACTIVATION = pathlib.Path(os.environ["LICENSE_FILE"])

session = requests.Session()
session.headers["product-secret-key"] = os.environ["PRODUCT_SECRET"]


def check(key):
    try:
        response = session.get(f"{API}/api/v2/license/verify", params={"license_key": key}, timeout=30)
        response.raise_for_status()
        license = response.json()["data"]
    except requests.HTTPError:
        ACTIVATION.unlink(missing_ok=True)
        return "INVALID"
    except requests.RequestException:
        return "KEEP" if ACTIVATION.exists() else "TRY LATER"
    if not license["enabled"]:
        ACTIVATION.unlink(missing_ok=True)
        return "INVALID"
    ACTIVATION.write_text(key)
    return "VALID"


def change(action, key):
    response = session.put(f"{API}/api/v2/license/{action}", data={"license_key": key}, timeout=30)
    response.raise_for_status()
    license = response.json()["data"]
    if action in ("usage", "decrease"):
        return f"USES {license['uses']}"
    return "ENABLED" if license["enabled"] else "DISABLED"


action, key = sys.argv[1:]
print(check(key) if action == "check" else change(action, key))
