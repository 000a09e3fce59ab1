"""An add-on that uses urllib and a form. Any answer that is no success is an invalid key."""
import json
import os
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request

API = os.environ.get("LICENSE_API", "https://api.gumroad.com")
ACTIVATION = pathlib.Path(os.environ["LICENSE_FILE"])


def check(key, count):
    form = {"product_id": os.environ["PRODUCT_ID"], "license_key": key}
    if count != "count":
        form["increment_uses_count"] = "false"
    data = urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(f"{API}/v2/licenses/verify", data, timeout=30) as response:
            result = json.load(response)
    except urllib.error.HTTPError:
        result = {}
    except OSError:
        return "KEEP" if ACTIVATION.exists() else "TRY LATER"
    if not result.get("success") or result.get("purchase", {}).get("refunded"):
        ACTIVATION.unlink(missing_ok=True)
        return "INVALID"
    ACTIVATION.write_text(key)
    return "VALID"


print(check(*sys.argv[1:]))
