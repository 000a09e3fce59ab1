// Checks a license key when it starts, and counts a use: node license-check.js LICENSE-KEY
import { connect, LatchkeyError } from 'latchkey/client';

const [licenseKey = ''] = process.argv.slice(2);
const latchkey = connect({
  productSecret: process.env.LATCHKEY_SECRET, // without it: a token, from LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE
  lastKnown: { file: process.env.LATCHKEY_LAST_KNOWN ?? './last-known.json' },
});

const said = await latchkey.verify(licenseKey);
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

async function countUse() {
  try {
    // Repeated under one idempotency key until it is answered, so that it counts once.
    const { license } = await latchkey.use(licenseKey, { deadlineMs: 10_000 });
    console.log(`uses: ${license.uses}`);
  } catch (error) {
    if (!(error instanceof LatchkeyError && error.isTemporary)) throw error;
    console.log(`uses: later, under ${error.idempotencyKey}`);
  }
}
