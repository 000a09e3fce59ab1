"""A chat bot that gives roles to buyers: aiohttp, second version of the API."""
import asyncio
import os
import sys

import aiohttp

API = os.environ["LICENSE_API"]
ACTIVATION = os.environ["LICENSE_FILE"]


async def check(session, key):
    try:
        async with session.get("/api/v2/license/verify", params={"license_key": key}) as response:
            if response.status != 200:
                raise LookupError(key)
            license = (await response.json())["data"]
            if not license["enabled"]:
                raise LookupError(key)
    except LookupError:
        if os.path.exists(ACTIVATION):
            os.unlink(ACTIVATION)
        return "INVALID"
    except (aiohttp.ClientError, asyncio.TimeoutError):
        return "KEEP" if os.path.exists(ACTIVATION) else "TRY LATER"
    with open(ACTIVATION, "w") as file:
        file.write(license["license_key"])
    return "VALID"


async def change(session, action, key):
    async with session.put(f"/api/v2/license/{action}", data={"license_key": key}) as response:
        response.raise_for_status()
        license = (await response.json())["data"]
    if action in ("usage", "decrease"):
        return f"USES {license['uses']}"
    return "ENABLED" if license["enabled"] else "DISABLED"


async def main(action, key):
    headers = {"product-secret-key": os.environ["PRODUCT_SECRET"]}
    async with aiohttp.ClientSession(API, headers=headers, trust_env=True) as session:
        print(await (check(session, key) if action == "check" else change(session, action, key)))


asyncio.run(main(*sys.argv[1:]))
