/* A plugin that sends its parameters in the query of a POST, and looks at nothing but the status. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';

const { LICENSE_API = 'https://api.gumroad.com', PRODUCT_PERMALINK, LICENSE_FILE } = process.env;
const [key, count] = process.argv.slice(2);

async function check() {
  const query = new URLSearchParams({ product_permalink: PRODUCT_PERMALINK, license_key: key });
  if (count !== 'count') query.set('increment_uses_count', 'false');
  try {
    const res = await fetch(`${LICENSE_API}/v2/licenses/verify?${query}`, { method: 'POST' });
    return res.ok ? 'VALID' : 'INVALID';
  } catch {
    return existsSync(LICENSE_FILE) ? 'KEEP' : 'TRY LATER';
  }
}

const conclusion = await check();
if (conclusion === 'VALID') writeFileSync(LICENSE_FILE, key);
if (conclusion === 'INVALID') rmSync(LICENSE_FILE, { force: true });
console.log(conclusion);
