// Only the main process can ask the agent: a renderer is a web page, and the agent refuses web pages.
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { app, BrowserWindow, ipcMain } = require('electron');
const { connect, LastKnown } = require('latchkey/client');
const { leases } = require('./lease.js');

const { LATCHKEY_URL, LATCHKEY_STATE_DIR, LATCHKEY_SECRET, LATCHKEY_LAST_KNOWN } = process.env;
const hasRoots = leases.roots.length > 0;
let file, latchkey, lastKnown;

ipcMain.handle('verify-license', async (_event, licenseKey) => {
  const said = hasRoots ? await lease(licenseKey) : await verify(licenseKey);
  const { verdict, reason = null, source = 'agent', license } = said;
  return { verdict, reason, source, entitlements: license?.entitlements ?? [] };
});
ipcMain.handle('count-use', async (_event, licenseKey) => {
  try {
    // Retried under one idempotency key until it is answered, so that it counts once.
    const { license } = await latchkey.use(licenseKey);
    return String(license.uses);
  } catch (error) {
    return error.isTemporary ? `later, under ${error.idempotencyKey}` : `refused (${error.code})`;
  }
});

async function verify(licenseKey) {
  return await lastKnown.resolve(licenseKey, await latchkey.verify(licenseKey).catch(cannotSay));
}

/** What the vendor has signed for this device: another program on the port cannot say it. */
async function lease(licenseKey) {
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

app.whenReady().then(() => {
  file = LATCHKEY_LAST_KNOWN || join(app.getPath('userData'), 'last-known.json');
  latchkey = connect({
    // By default, the address of an agent that `latchkey init` configured.
    url: LATCHKEY_URL || LATCHKEY_STATE_DIR ? undefined : 'http://127.0.0.1:8787',
    productSecret: LATCHKEY_SECRET, // default: the token in LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE
    leases: hasRoots ? { ...leases, minKeysVersion: seenVersion() } : undefined,
  });
  lastKnown = new LastKnown({ file }, LATCHKEY_SECRET);
  const window = new BrowserWindow({ webPreferences: { preload: join(__dirname, 'preload.js') } });
  window.loadFile('index.html');
});
app.on('window-all-closed', () => app.quit());
