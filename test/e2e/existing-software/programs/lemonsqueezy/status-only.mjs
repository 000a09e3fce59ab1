/* A plugin that posts JSON, and takes every answer without `ok` for a wrong key. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const { LICENSE_API = 'https://api.lemonsqueezy.com', LICENSE_FILE } = process.env;
const [key, count] = process.argv.slice(2);

const stored = existsSync(LICENSE_FILE) ? readFileSync(LICENSE_FILE, 'utf8') : null;

async function ask(name, parameters) {
  const res = await fetch(`${LICENSE_API}/v1/licenses/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json', Authorization: 'Bearer key' },
    body: JSON.stringify({ license_key: key, ...parameters }),
  });
  return res.ok ? await res.json() : {};
}

async function check() {
  try {
    if (count === 'count') {
      const { activated, instance } = await ask('activate', { instance_name: 'x-plugin' });
      if (activated) writeFileSync(LICENSE_FILE, instance.id);
      return activated ? 'VALID' : 'INVALID';
    }
    const { valid } = await ask('validate', stored?.includes('-') ? { instance_id: stored } : {});
    if (!valid) rmSync(LICENSE_FILE, { force: true });
    else if (stored === null) writeFileSync(LICENSE_FILE, 'key');
    return valid ? 'VALID' : 'INVALID';
  } catch {
    return stored === null ? 'TRY LATER' : 'KEEP';
  }
}

console.log(await check());
