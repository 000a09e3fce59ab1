import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSandbox, type Sandbox } from '../../src/testing.ts';
import { startFakeHolder } from '../features/leases/support/fake-holder.ts';
import { makeLeaseVectors } from '../features/leases/support/vectors.ts';
import { installClient } from '../support/process/installed-client.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);

/** A stand-in for the part of Electron's API that the example uses; Electron is not installed here. */
const electron = `
const handlers = new Map();
exports.ipcMain = { handle: (name, handler) => handlers.set(name, handler) };
exports.ipcRenderer = { invoke: async (name, value) => structuredClone(await handlers.get(name)({}, value)) };
exports.contextBridge = { exposeInMainWorld: (name, value) => (globalThis[name] = value) };
exports.app = { whenReady: async () => undefined, getPath: () => __dirname, on: () => undefined };
exports.BrowserWindow = class { loadFile() {} };
`;

/** Starts the parts of the example in one process, and fills in the form. */
const play = `
require('./main.js');
require('./preload.js');
globalThis.window = globalThis;
globalThis.FormData = class { get = () => process.argv[2] };
const shown = {};
let submit;
const form = { addEventListener: (_, listener) => (submit = listener) };
globalThis.document = { querySelector: (name) => (name === 'form' ? form : shown) };
require('./renderer.js');
setImmediate(() => submit({ preventDefault() {} }).then(() => console.log(shown.textContent)));
`;

let directory: TemporaryDirectory;
let sandbox: Sandbox;
beforeAll(async () => {
  directory = temporaryDirectory();
  cpSync(join(import.meta.dirname, '../../examples/clients/electron'), directory.path, { recursive: true });
  await installClient(directory.path);
  mkdirSync(join(directory.path, 'node_modules/electron'));
  writeFileSync(join(directory.path, 'node_modules/electron/index.js'), electron);
  writeFileSync(join(directory.path, 'play.js'), play);
  sandbox = await startSandbox({
    licenses: [{ licenseKey: 'VALID' }, { licenseKey: 'OFF', enabled: false }],
  });
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

/** The text that the page shows for a key. */
async function show(licenseKey: string, secret = sandbox.productSecret): Promise<string> {
  const { stdout } = await run(process.execPath, [join(directory.path, 'play.js'), licenseKey], {
    env: {
      LATCHKEY_URL: sandbox.agent.url,
      LATCHKEY_SECRET: secret,
      LATCHKEY_LAST_KNOWN: join(directory.path, `last-known of ${secret}`),
    },
  });
  return stdout.trim();
}

it('the Electron example shows each verdict, also without an agent or with a wrong credential (with a stand-in for Electron)', async () => {
  expect(await show('VALID')).toBe('valid, uses: 1');
  expect(await show('OFF')).toBe('refused: disabled');
  expect(await show('NOBODY')).toBe('refused: not_found');
  expect(await show('VALID', 'not-the-secret')).toBe('undetermined: unknown');
  await sandbox.agent.stop();
  expect(await show('VALID')).toBe('valid (last known)');
});

it('the Electron example with root keys concludes from each answer of a holder, good or bad, what it must', async () => {
  const made = makeLeaseVectors();
  const file = join(directory.path, 'lease.js');
  const source = readFileSync(file, 'utf8');
  expect(source.split('roots: []')).toHaveLength(2);
  writeFileSync(file, source.replace('roots: []', `roots: ${JSON.stringify(made.roots)}`));
  await using holder = await startFakeHolder(made);
  const seen = join(directory.path, 'versions');
  const states = new Set(['disabled', 'ended', 'blocked', 'replaced', 'expired']);
  const wrong: string[] = [];
  for (const { name, typed, expected, entitlements = [] } of made.vectors) {
    writeFileSync(seen, String(made.minKeysVersion));
    const { stdout } = await run(process.execPath, [join(directory.path, 'play.js'), typed], {
      env: { LATCHKEY_URL: holder.url, LATCHKEY_LAST_KNOWN: seen },
    });
    const reason = expected === 'license_expired' ? 'expired' : expected;
    const other =
      states.has(reason) && expected !== 'expired'
        ? `refused: ${reason}`
        : `undetermined: ${expected === 'expired' ? 'expired' : 'not_proven'}`;
    const unlocked = entitlements.length === 0 ? '' : `entitlements: ${entitlements.join(' ')}, `;
    const wanted = expected === 'valid' ? `valid, ${unlocked}uses: 1` : other;
    if (stdout.trim() !== wanted) wrong.push(`${name}: ${stdout.trim()}, not ${wanted}`);
  }
  expect(wrong).toEqual([]);
});
