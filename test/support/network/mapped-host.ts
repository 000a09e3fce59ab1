import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../patience.ts';

/*
 * A separate machine (a network namespace with its own hosts file) on which the store's name resolves to the
 * agent. Runs in a folder with `store.yaml` and `latchkey.yaml`; prints the results as JSON.
 */

const run = promisify(execFile);
const latchkey = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));
const app = fileURLToPath(new URL('../../e2e/existing-software/programs/desktop-app.mjs', import.meta.url));
const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';

const started: ChildProcess[] = [];

async function serve(file: string, stateDir: string): Promise<void> {
  const child = spawn(process.execPath, [latchkey, 'serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  started.push(child);
  const begun = performance.now();
  while (!existsSync(join(stateDir, 'listen.json'))) {
    if (child.exitCode !== null || performance.now() - begun > patienceMs)
      throw new Error(`${file} does not start`);
    await sleep(50);
  }
}

async function command(...argv: string[]): Promise<string> {
  const options = { timeout: patienceMs };
  const { stdout } = await run(process.execPath, [latchkey, ...argv], options).catch(
    (error: unknown) => error as { stdout: string },
  );
  return stdout;
}

/** The conclusion of the program, which only knows the address that is compiled in. */
async function conclude(action: string): Promise<string> {
  const env = {
    PATH: process.env['PATH'],
    PRODUCT_SECRET: 'the-product-secret',
    LICENSE_FILE: 'activation',
    NODE_EXTRA_CA_CERTS: 'tls/ca.pem',
  };
  return await run(process.execPath, [app, action, licenseKey], { env, timeout: patienceMs }).then(
    ({ stdout }) => stdout.trim(),
    () => 'FAILED',
  );
}

await serve('store.yaml', 'store');
await command(
  'product',
  'add',
  'Editor',
  '--key',
  'RGsF',
  '--secret-file',
  'rgsf.secret',
  '--config',
  'store.yaml',
);
await command(
  'license',
  'issue',
  '--product',
  'RGsF',
  '--email',
  'a@example.com',
  '--key',
  licenseKey,
  '--config',
  'store.yaml',
);
await serve('latchkey.yaml', 'latchkey-state');
const concluded = [await conclude('check'), await conclude('usage')];
const status = await command('status', '--json', '--config', 'latchkey.yaml');
const doctor = await command('doctor', '--config', 'latchkey.yaml');
process.stdout.write(`${JSON.stringify({ concluded, status: JSON.parse(status) as unknown, doctor })}\n`);
for (const child of started) {
  const ended = once(child, 'close');
  child.kill('SIGTERM');
  await ended;
}
