// Only the main process can ask the agent: a renderer is a web page, and the agent refuses web pages.
const { join } = require('node:path');
const { app, BrowserWindow, ipcMain } = require('electron');
const { connect, LastKnown } = require('latchkey/client');

const { LATCHKEY_URL, LATCHKEY_STATE_DIR, LATCHKEY_SECRET, LATCHKEY_LAST_KNOWN } = process.env;
const latchkey = connect({
  // By default, the address of an agent that `latchkey init` configured.
  url: LATCHKEY_URL || LATCHKEY_STATE_DIR ? undefined : 'http://127.0.0.1:8787',
  productSecret: LATCHKEY_SECRET, // default: the token in LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE
});
/** @type {LastKnown} */
let lastKnown;

ipcMain.handle('verify-license', async (_event, licenseKey) => {
  const said = await lastKnown.resolve(licenseKey, await latchkey.verify(licenseKey).catch(cannotSay));
  return { verdict: said.verdict, reason: said.reason ?? null, source: said.source ?? null };
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

/** A mistake of this program, such as a wrong credential, must not lock out the customer. */
function cannotSay(error) {
  console.error(error.message);
  return { verdict: 'undetermined', reason: 'unknown', license: null, error };
}

app.whenReady().then(() => {
  const file = LATCHKEY_LAST_KNOWN || join(app.getPath('userData'), 'last-known.json');
  lastKnown = new LastKnown({ file }, LATCHKEY_SECRET);
  const window = new BrowserWindow({ webPreferences: { preload: join(__dirname, 'preload.js') } });
  window.loadFile('index.html');
});
app.on('window-all-closed', () => app.quit());
