"""An add-on of a modelling program, which may only use Python's standard library. Second version of the API."""
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

API = os.environ["LICENSE_API"] + "/api/v2/license/"
ACTIVATION = os.environ["LICENSE_FILE"]


def ask(action, key, method="GET"):
    form = urllib.parse.urlencode({"license_key": key})
    url = API + action + ("?" + form if method == "GET" else "")
    request = urllib.request.Request(url, method=method, data=form.encode() if method == "PUT" else None)
    request.add_header("Product-secret-key", os.environ["PRODUCT_SECRET"])
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["data"]


def check(key):
    try:
        if ask("verify", key)["enabled"]:
            open(ACTIVATION, "w").write(key)
            return "VALID"
    except urllib.error.HTTPError:
        pass
    except OSError:
        return "KEEP" if os.path.exists(ACTIVATION) else "TRY LATER"
    if os.path.exists(ACTIVATION):
        os.remove(ACTIVATION)
    return "INVALID"


action, key = sys.argv[1:3]
if action == "check":
    print(check(key))
else:
    data = ask(action, key, "PUT")
    print("USES %d" % data["uses"] if action in ("usage", "decrease") else "ENABLED" if data["enabled"] else "DISABLED")
