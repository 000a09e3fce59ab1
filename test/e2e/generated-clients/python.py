import json
import os

from latchkey_client import AuthenticatedClient
from latchkey_client.api.licenses import record_use, verify_license
from latchkey_client.models import LicenseKey

client = AuthenticatedClient(
    base_url=os.environ["ADDRESS"],
    token=os.environ["SECRET"],
    prefix="",
    auth_header_name="product-secret-key",
)

known = verify_license.sync(client=client, license_key="KEY-1")
used = record_use.sync(client=client, body=LicenseKey(license_key="KEY-1"), idempotency_key="python")
unknown = verify_license.sync(client=client, license_key="NONE")
print(json.dumps([known.data.enabled, used.data.uses, unknown.code]))
