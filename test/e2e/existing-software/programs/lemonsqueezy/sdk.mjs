/* A server that uses the SDK of the store. The SDK has a fixed host, so that requests to it are sent elsewhere by fetch. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { activateLicense, validateLicense } from '@lemonsqueezy/lemonsqueezy.js';

const host = 'https://api.lemonsqueezy.com';
const { LICENSE_API = host, LICENSE_FILE } = process.env;
const [key, count] = process.argv.slice(2);

const { fetch } = globalThis;
globalThis.fetch = (url, options) => fetch(String(url).replace(host, LICENSE_API), options);

const stored = existsSync(LICENSE_FILE) ? readFileSync(LICENSE_FILE, 'utf8') : null;

function noAnswer() {
  return stored === null ? 'TRY LATER' : 'KEEP';
}

async function activate() {
  const { data, statusCode } = await activateLicense(key, 'server-1');
  if (statusCode === null) return noAnswer();
  if (!data?.activated) return 'INVALID';
  writeFileSync(LICENSE_FILE, data.instance.id);
  return 'VALID';
}

async function validate() {
  const { data, statusCode } = await validateLicense(key, stored?.includes('-') ? stored : undefined);
  if (statusCode === null) return noAnswer();
  if (!data?.valid) {
    rmSync(LICENSE_FILE, { force: true });
    return 'INVALID';
  }
  if (stored === null) writeFileSync(LICENSE_FILE, 'key');
  return 'VALID';
}

console.log(await (count === 'count' ? activate() : validate()));
