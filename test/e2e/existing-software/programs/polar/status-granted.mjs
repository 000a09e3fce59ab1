/* A plugin that looks at one word of the answer. Everything else is an invalid key. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';

const { LICENSE_API = 'https://api.polar.sh', ORGANIZATION_ID, LICENSE_FILE } = process.env;
const [key, count] = process.argv.slice(2);

async function check() {
  let response;
  try {
    response = await fetch(`${LICENSE_API}/v1/customer-portal/license-keys/validate`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        key,
        organization_id: ORGANIZATION_ID,
        increment_usage: count === 'count' ? 2 : null,
      }),
    });
  } catch {
    return existsSync(LICENSE_FILE) ? 'KEEP' : 'TRY LATER';
  }
  const { status } = await response.json().catch(() => ({}));
  return status === 'granted' ? 'VALID' : 'INVALID';
}

const conclusion = await check();
if (conclusion === 'VALID') writeFileSync(LICENSE_FILE, key);
if (conclusion === 'INVALID') rmSync(LICENSE_FILE, { force: true });
console.log(conclusion);
