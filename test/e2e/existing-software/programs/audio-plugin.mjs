// An audio plugin that tolerates 5xx, and treats every other error status as "invalid", even 429.
// Second version of the API.
import fs from 'node:fs';

const headers = { 'product-secret-key': process.env.PRODUCT_SECRET };
const base = `${process.env.LICENSE_API}/api/v2/license`;
const activation = process.env.LICENSE_FILE;

function keep() {
  return fs.existsSync(activation) ? 'KEEP' : 'TRY LATER';
}

async function check(key) {
  let response;
  try {
    response = await fetch(`${base}/verify?license_key=${encodeURIComponent(key)}`, { headers });
  } catch {
    return keep();
  }
  if (response.status >= 500) return keep();
  const isEnabled = response.ok && (await response.json()).data.enabled;
  if (isEnabled) fs.writeFileSync(activation, key);
  else fs.rmSync(activation, { force: true });
  return isEnabled ? 'VALID' : 'INVALID';
}

async function change(action, key) {
  const body = new URLSearchParams({ license_key: key });
  const response = await fetch(`${base}/${action}`, { method: 'PUT', headers, body });
  const { data } = await response.json();
  if (action === 'usage' || action === 'decrease') return `USES ${data.uses}`;
  return data.enabled ? 'ENABLED' : 'DISABLED';
}

const [action, key] = process.argv.slice(2);
console.log(action === 'check' ? await check(key) : await change(action, key));
