"""A plugin host that uses requests and treats an unreadable response as a refusal. First version of the API."""
import os
import sys

import requests

API = os.environ["LICENSE_API"]
ACTIVATION = os.environ["LICENSE_FILE"]
HEADERS = {"payhip-api-key": os.environ["API_KEY"]}


def parameters(key):
    return {"product_link": os.environ["PRODUCT_LINK"], "license_key": key}


def forget():
    if os.path.exists(ACTIVATION):
        os.remove(ACTIVATION)
    return "INVALID"


def check(key):
    try:
        r = requests.get(API + "/api/v1/license/verify", headers=HEADERS, params=parameters(key))
    except requests.exceptions.ConnectionError:
        return "KEEP" if os.path.exists(ACTIVATION) else "TRY LATER"
    try:
        if r.json()["data"]["enabled"] is True:
            with open(ACTIVATION, "w") as file:
                file.write(key)
            return "VALID"
    except (ValueError, KeyError, TypeError):
        pass
    return forget()


action, key = sys.argv[1], sys.argv[2]
if action == "check":
    print(check(key))
else:
    r = requests.put(API + "/api/v1/license/" + action, headers=HEADERS, data=parameters(key))
    data = r.json()["data"]
    if action in ["usage", "decrease"]:
        print("USES", data["uses"])
    else:
        print("ENABLED" if data["enabled"] else "DISABLED")
