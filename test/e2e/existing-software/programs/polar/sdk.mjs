/* An app that uses Polar's own SDK, and takes every error that has a status for an invalid key. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { Polar } from '@polar-sh/sdk';

const { LICENSE_API = 'https://api.polar.sh', ORGANIZATION_ID, LICENSE_FILE } = process.env;
const [key, count] = process.argv.slice(2);
const polar = new Polar({ serverURL: LICENSE_API });

async function check() {
  try {
    const license = await polar.customerPortal.licenseKeys.validate({
      key,
      organizationId: ORGANIZATION_ID,
      ...(count === 'count' && { incrementUsage: 2 }),
    });
    if (license.status !== 'granted') return 'INVALID';
    return `VALID for ${license.customer.email}`;
  } catch (error) {
    if (error.statusCode !== undefined) return 'INVALID';
    return existsSync(LICENSE_FILE) ? 'KEEP' : 'TRY LATER';
  }
}

const conclusion = await check();
if (conclusion.startsWith('VALID')) writeFileSync(LICENSE_FILE, key);
if (conclusion === 'INVALID') rmSync(LICENSE_FILE, { force: true });
console.log(conclusion);
