// A game that still uses the first version of the API: the account's API key, and the product by
// its link.
import fs from 'node:fs';

const { LICENSE_API, API_KEY, PRODUCT_LINK, LICENSE_FILE } = process.env;
const headers = { 'payhip-api-key': API_KEY };

async function verify(key) {
  const query = `product_link=${encodeURIComponent(PRODUCT_LINK)}&license_key=${encodeURIComponent(key)}`;
  const response = await fetch(`${LICENSE_API}/api/v1/license/verify?${query}`, { headers });
  const body = await response.json();
  return Array.isArray(body.data) || !body.data ? null : body.data;
}

const [action, key] = process.argv.slice(2);
if (action === 'check') {
  try {
    const license = await verify(key);
    if (license === null || !license.enabled) {
      fs.rmSync(LICENSE_FILE, { force: true });
      console.log('INVALID');
    } else {
      fs.writeFileSync(LICENSE_FILE, JSON.stringify(license));
      console.log('VALID');
    }
  } catch {
    console.log(fs.existsSync(LICENSE_FILE) ? 'KEEP' : 'TRY LATER');
  }
} else {
  const form = new URLSearchParams();
  form.append('product_link', PRODUCT_LINK);
  form.append('license_key', key);
  const response = await fetch(`${LICENSE_API}/api/v1/license/${action}`, {
    method: 'PUT',
    headers,
    body: form,
  });
  const { data } = await response.json();
  console.log(/usage|decrease/.test(action) ? `USES ${data.uses}` : data.enabled ? 'ENABLED' : 'DISABLED');
}
