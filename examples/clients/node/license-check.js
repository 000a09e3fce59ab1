// Checks a license key when it starts, and counts a use: node license-check.js LICENSE-KEY
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, LastKnown, ProblemError } from 'latchkey/client';
import { leases } from './lease.js';

const { LATCHKEY_URL, LATCHKEY_STATE_DIR, LATCHKEY_SECRET, LATCHKEY_LAST_KNOWN } = process.env;
const [licenseKey] = process.argv.slice(2);
if (licenseKey === undefined) {
  console.error('usage: license-check.js LICENSE-KEY');
  process.exit(2);
}
const file = LATCHKEY_LAST_KNOWN || './last-known.json';
const hasRoots = leases.roots.length > 0;
const latchkey = connect({
  // By default, the address of an agent that `latchkey init` configured.
  url: LATCHKEY_URL || LATCHKEY_STATE_DIR ? undefined : 'http://127.0.0.1:8787',
  productSecret: LATCHKEY_SECRET, // default: the token in LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE
  leases: hasRoots ? { ...leases, minKeysVersion: seenVersion() } : undefined,
});

const said = hasRoots ? await lease() : await verify();
if (said.verdict === 'valid') {
  const isLastKnown = said.source === 'last_known';
  console.log(isLastKnown ? 'valid (last known)' : 'valid');
  const { entitlements } = said.license;
  if (entitlements.length > 0) console.log(`entitlements: ${entitlements.join(' ')}`);
  if (!isLastKnown) await countUse();
} else if (said.verdict === 'refused') {
  console.log(`refused: ${said.reason.replaceAll('_', ' ')}`);
  process.exitCode = 1;
} else {
  console.log('undetermined');
  process.exitCode = 2;
}

async function verify() {
  const lastKnown = new LastKnown({ file }, LATCHKEY_SECRET);
  return await lastKnown.resolve(licenseKey, await latchkey.verify(licenseKey).catch(cannotSay));
}

/** What the vendor has signed for this device: another program on the port cannot say it. */
async function lease() {
  const said = await latchkey.lease(licenseKey).catch(cannotSay);
  if (said.error) console.error(said.error.message);
  if (said.keysVersion) seenVersion(said.keysVersion);
  return said;
}

/** The version of the keys that was seen last. Keys that the vendor has retired have a lower one. */
function seenVersion(version) {
  try {
    if (version !== undefined) writeFileSync(file, String(version));
    return Number.parseInt(readFileSync(file, 'utf8')) || 0;
  } catch {
    return 0;
  }
}

/** A mistake of this program, such as a wrong credential, must not lock out the customer. */
function cannotSay(error) {
  console.error(error.message);
  return { verdict: 'undetermined', reason: 'unknown', license: null, error };
}

async function countUse() {
  try {
    // Retried under one idempotency key until it is answered, so that it counts once.
    const { license } = await latchkey.use(licenseKey, { deadlineMs: 10_000 });
    console.log(`uses: ${license.uses}`);
  } catch (error) {
    const isRefused = error instanceof ProblemError && !error.isTemporary;
    console.log(`uses: ${isRefused ? `refused (${error.code})` : `later, under ${error.idempotencyKey}`}`);
  }
}
