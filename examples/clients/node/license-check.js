// Checks a license key when it starts, and counts a use: node license-check.js LICENSE-KEY
import { connect, LastKnown, ProblemError } from 'latchkey/client';

const { LATCHKEY_URL, LATCHKEY_STATE_DIR, LATCHKEY_SECRET, LATCHKEY_LAST_KNOWN } = process.env;
const [licenseKey] = process.argv.slice(2);
if (licenseKey === undefined) {
  console.error('usage: license-check.js LICENSE-KEY');
  process.exit(2);
}
const latchkey = connect({
  // By default, the address of an agent that `latchkey init` configured.
  url: LATCHKEY_URL || LATCHKEY_STATE_DIR ? undefined : 'http://127.0.0.1:8787',
  productSecret: LATCHKEY_SECRET, // default: the token in LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE
});
const lastKnown = new LastKnown({ file: LATCHKEY_LAST_KNOWN || './last-known.json' }, LATCHKEY_SECRET);

const said = await lastKnown.resolve(licenseKey, await latchkey.verify(licenseKey).catch(cannotSay));
if (said.verdict === 'valid') {
  console.log(said.source === 'agent' ? 'valid' : 'valid (last known)');
  if (said.source === 'agent') await countUse();
} else if (said.verdict === 'refused') {
  console.log(`refused: ${said.reason === 'disabled' ? 'disabled' : 'not found'}`);
  process.exitCode = 1;
} else {
  console.log('undetermined');
  process.exitCode = 2;
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
