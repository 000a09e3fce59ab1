// A desktop app that checks its license when it starts, with Node's fetch. Second version of the
// API.
import fs from 'node:fs';

const API = process.env.LICENSE_API ?? 'https://api.example.com';
const ACTIVATION = process.env.LICENSE_FILE;

async function ask(method, action, key) {
  const url = new URL(`/api/v2/license/${action}`, API);
  const options = { method, headers: { 'product-secret-key': process.env.PRODUCT_SECRET } };
  if (method === 'GET') url.searchParams.set('license_key', key);
  else options.body = new URLSearchParams({ license_key: key });
  const response = await fetch(url, options);
  return await response.json();
}

async function check(key) {
  let answer;
  try {
    answer = await ask('GET', 'verify', key);
  } catch {
    // No network: an activated installation keeps working.
    return fs.existsSync(ACTIVATION) ? 'KEEP' : 'TRY LATER';
  }
  if (answer.data && answer.data.enabled) {
    fs.writeFileSync(ACTIVATION, key);
    return 'VALID';
  }
  fs.rmSync(ACTIVATION, { force: true });
  return 'INVALID';
}

async function change(action, key) {
  const { data } = await ask('PUT', action, key);
  if (action === 'usage' || action === 'decrease') return `USES ${data.uses}`;
  return data.enabled ? 'ENABLED' : 'DISABLED';
}

const [action, key] = process.argv.slice(2);
console.log(action === 'check' ? await check(key) : await change(action, key));
