// The license is asked for here, in the main process: a renderer is a web page, which the agent refuses.
const { join } = require('node:path');
const { app, BrowserWindow, ipcMain } = require('electron');
const { connect } = require('latchkey/client');

/** @type {import('latchkey/client').LatchkeyClient} */
let latchkey;

ipcMain.handle('verify-license', async (_event, licenseKey) => {
  const said = await latchkey.verify(String(licenseKey));
  return { verdict: said.verdict, reason: said.verdict === 'valid' ? null : said.reason };
});
ipcMain.handle('count-use', async (_event, licenseKey) => {
  const { license } = await latchkey.use(String(licenseKey));
  return license.uses;
});

app.whenReady().then(() => {
  latchkey = connect({
    productSecret: process.env.LATCHKEY_SECRET,
    lastKnown: { file: join(app.getPath('userData'), 'last-known.json') },
  });
  const window = new BrowserWindow({ webPreferences: { preload: join(__dirname, 'preload.js') } });
  window.loadFile('index.html');
});
app.on('window-all-closed', () => app.quit());
