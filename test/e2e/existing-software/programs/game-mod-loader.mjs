// A game mod loader that treats every response with `data` as a license, unless the license is
// disabled. Second version of the API.
import fs from 'node:fs';

const headers = { 'product-secret-key': process.env.PRODUCT_SECRET };
const base = `${process.env.LICENSE_API}/api/v2/license`;
const activation = process.env.LICENSE_FILE;

async function check(key) {
  let json;
  try {
    const response = await fetch(`${base}/verify?license_key=${encodeURIComponent(key)}`, { headers });
    json = await response.json();
  } catch {
    return fs.existsSync(activation) ? 'KEEP' : 'TRY LATER';
  }
  if (json.data && json.data.enabled !== false) {
    fs.writeFileSync(activation, key);
    return 'VALID';
  }
  fs.rmSync(activation, { force: true });
  return 'INVALID';
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
