// The license is asked for here, in the main process: a renderer is a web page, which the agent refuses.
const { join } = require('node:path');
const { app, BrowserWindow, ipcMain } = require('electron');
const { connect, LastKnown } = require('latchkey/client');

const { LATCHKEY_URL, LATCHKEY_STATE_DIR, LATCHKEY_SECRET, LATCHKEY_LAST_KNOWN } = process.env;
const latchkey = connect({
  // Where the environment says, else at the address that `latchkey init` gives an agent.
  url: LATCHKEY_URL || LATCHKEY_STATE_DIR ? undefined : 'http://127.0.0.1:8787',
  productSecret: LATCHKEY_SECRET, // without it: a token, from LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE
});
/** @type {LastKnown} */
let lastKnown;

ipcMain.handle('verify-license', async (_event, licenseKey) => {
  const said = await lastKnown.resolve(licenseKey, await latchkey.verify(licenseKey).catch(cannotSay));
  return { verdict: said.verdict, reason: said.reason ?? null, source: said.source ?? null };
});
ipcMain.handle('count-use', async (_event, licenseKey) => {
  try {
    // Repeated under one idempotency key until it is answered, so that it counts once.
    const { license } = await latchkey.use(licenseKey);
    return String(license.uses);
  } catch (error) {
    return error.isTemporary ? `later, under ${error.idempotencyKey}` : `refused (${error.code})`;
  }
});

/** What this program itself does wrong, such as a credential that is refused, is no fault of the customer. */
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
