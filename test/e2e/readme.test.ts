import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { freePort } from '../support/network/free-port.ts';
import { startPlainUpstream } from '../support/harness/plain-upstream.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patience, patienceMs } from '../support/patience.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const program = join(root, 'src/cli/main.ts');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const ciRun = readFileSync(join(root, '.ci/run'), 'utf8');
const run = promisify(execFile);

/** The commands of the README's shell blocks, with continuation lines joined. */
function commandsOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
  return blocks.flatMap((block) =>
    block
      .replaceAll(/\\\n\s*/g, '')
      .split('\n')
      .filter((line) => line.trim() !== ''),
  );
}

const commands = commandsOf(readme);
const configuration = /^```yaml\n([\s\S]*?)^```$/m.exec(readme)?.[1] ?? '';
const licenseKey = /license_key=([A-Z0-9-]+)/.exec(readme)?.[1] ?? '';
const prefix = 'npm run latchkey -- ';
/** Whether the command belongs to the agent beside a central API, which has its own folder. */
const isBesideStore = (command: string): boolean => command.includes('./agent/');
/** The seller's guide continues where the README ends. */
const sellerCommands = commandsOf(readFileSync(join(root, 'examples/guides/seller.md'), 'utf8')).map(
  (command) => command.replace(/^latchkey /, prefix),
);

/** Runs a command of the README as a user would, but in a temporary folder and on a free port. */
async function follow(command: string, folder: string, port: number): Promise<string> {
  const here = command.replaceAll('127.0.0.1:8787', `127.0.0.1:${port}`);
  const line = here.startsWith(prefix)
    ? here.replace(prefix, `'${process.execPath}' '${program}' `)
    : here.replace(/^curl /, 'curl -sS --fail-with-body ');
  const environment = { PATH: process.env['PATH'], HOME: folder };
  const { stdout } = await run('bash', ['-c', line], { cwd: folder, env: environment, timeout: patienceMs });
  return stdout;
}

async function serving(
  args: string,
  folder: string,
  stateDir: string,
): Promise<ChildProcess & AsyncDisposable> {
  const environment = { PATH: process.env['PATH'], HOME: folder };
  const child = spawn(process.execPath, [program, ...args.split(' ')], { cwd: folder, env: environment });
  await vi.waitFor(() => expect(existsSync(join(folder, stateDir, 'listen.json'))).toBe(true), patience);
  return Object.assign(child, {
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'close');
      child.kill('SIGTERM');
      await ended;
    },
  });
}

test('the README begins with one command for a fresh machine, and CI runs its parts', () => {
  expect(commands[0]).toBe('npm ci && npm run demo');
  for (const part of ['npm ci', 'npm run demo', 'npm run check', 'npm run test:all'])
    expect(ciRun).toContain(part);
});

test("an agent that is configured, called and inspected by the README's commands gives the documented results", async () => {
  await using folder = temporaryDirectory();
  const port = await freePort();
  await using upstream = await startPlainUpstream({
    apiKey: 'api-key',
    products: [{ productKey: 'RGsF', secret: 'the-product-secret' }],
    licenses: [{ licenseKey, productKey: 'RGsF', buyerEmail: 'buyer@example.com' }],
  });
  const file = configuration
    .replace('https://api.example.com', upstream.url)
    .replace('127.0.0.1:8787', `127.0.0.1:${port}`);
  writeFileSync(join(folder.path, 'latchkey.yaml'), file);
  await follow(/chmod \d+ latchkey.yaml/.exec(readme)?.[0] ?? '', folder.path, port);
  const serve = commands.find((command) => command.endsWith(' serve')) ?? '';
  await using _agent = await serving(serve.replace(prefix, ''), folder.path, 'latchkey-state');
  const calls = commands.filter((command) => command.startsWith('curl'));
  expect(calls).toHaveLength(3);
  for (const call of calls) expect(await follow(call, folder.path, port)).toContain(licenseKey);
  await upstream.until(() => upstream.countsOf(licenseKey).usages === 1);
  const looks = commands.filter(
    (command) =>
      /-- (status|verify|outbox|sync|config|token|audit|license history|backup|doctor|service)/.test(
        command,
      ) && !isBesideStore(command),
  );
  expect(looks).toHaveLength(9);
  for (const look of looks) {
    const answer = await follow(look, folder.path, port);
    expect(answer.trim(), look).not.toBe('');
  }
});

test("the README's sandbox runs a store and writes its credentials to a file", async () => {
  await using folder = temporaryDirectory();
  const command = commands.find((each) => each.includes('-- sandbox ')) ?? '';
  const args = command.replace(prefix, '').replace('18788', String(await freePort()));
  const environment = { PATH: process.env['PATH'], HOME: folder.path };
  const child = spawn(process.execPath, [program, ...args.split(' ')], {
    cwd: folder.path,
    env: environment,
  });
  const ended = once(child, 'close');
  try {
    const file = join(folder.path, 'sandbox.json');
    await vi.waitFor(
      () => expect(JSON.parse(readFileSync(file, 'utf8'))).toHaveProperty('license_key'),
      patience,
    );
  } finally {
    child.kill('SIGTERM');
    await ended;
  }
});

test("a central API run by the commands of the README and the seller’s guide sells, refunds, discounts and imports another store's sales", async () => {
  await using folder = temporaryDirectory();
  const port = await freePort();
  const all = new Set([...commands, ...sellerCommands]);
  const steps = [...all].filter((command) => command.endsWith('--state-dir ./store'));
  const serve = steps.find((command) => command.includes(' serve ')) ?? '';
  const args = `${serve.replace(prefix, '')} --listen 127.0.0.1:${port}`;
  await using _authority = await serving(args, folder.path, 'store');
  const [apiKey, secret] = ['the-key-of-the-shop', 'the-secret-of-rgsf'];
  writeFileSync(join(folder.path, 'shop.key'), `${apiKey}\n`);
  writeFileSync(join(folder.path, 'rgsf.secret'), `${secret}\n`);
  for (const [file, lines] of Object.entries({
    'licenses.csv': ['Key,Mail', 'OLD-KEY-0,buyer@example.com'],
    'keys.csv': [
      'license_key,buyer_email,status,expires_at',
      'OLD-KEY-2,buyer@example.com,trial,',
      'OLD-KEY-3,buyer@example.com,revoked,2020-01-01',
    ],
    'sales.csv': ['Purchase ID,Purchase Email,Product ID,License Key', 'S1,buyer@example.com,RGsF,OLD-KEY-4'],
  }))
    writeFileSync(join(folder.path, file), lines.join('\n'));
  const known: Record<string, string> = {};
  const answers: unknown[] = [];
  // A coupon is changed only after it was created.
  const isLater = (step: string): boolean => step.includes('COUPON_ID');
  const inOrder = [...steps.filter((step) => !isLater(step)), ...steps.filter(isLater)];
  for (const step of inOrder.filter((command) => command !== serve)) {
    const filled = step
      .replace('COUPON_ID', known['coupon_id'] ?? '')
      .replace('LICENSE_KEY', known['license_key'] ?? '')
      .replace('update KEY', `update ${known['product_key']}`)
      .replace('--product KEY', `--product ${known['product_key']}`)
      .replace(' KEY=', ` ${known['product_key']}=`)
      .replace('PURCHASE_ID', known['purchase_id'] ?? '')
      .replace('ACCOUNT_ID', known['account_id'] ?? '');
    const answer: unknown = JSON.parse(await follow(`${filled} --json`, folder.path, port));
    answers.push(answer);
    const told = Object.entries(answer ?? {}).filter(([, value]) => value !== null);
    Object.assign(known, Object.fromEntries(told));
    const { license } = (answer ?? {}) as { license?: { license_key: string } };
    if (license !== undefined) known['license_key'] = license.license_key;
  }
  expect(answers).toContainEqual(expect.objectContaining({ refunded: true }));
  expect(answers).toContainEqual(
    expect.objectContaining({ code: 'WELCOME', order: 'order-1017', discount: 800 }),
  );
  const call = async (path: string, headers: Record<string, string>): Promise<unknown> =>
    await (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).json();
  expect(await call('/api/v2/coupons', { 'service-api-key': apiKey })).toEqual({ data: { coupons: [] } });
  const verify = '/api/v2/license/verify?license_key=OLD-KEY-1';
  expect(await call(verify, { 'product-secret-key': secret })).toMatchObject({
    data: { date: '2024-02-22T11:23:05+00:00', uses: 3, enabled: true },
  });
});

test('an agent beside the central API, set up as the README says, verifies the keys that the central API sold', async () => {
  await using folder = temporaryDirectory();
  const [port, agentPort] = [await freePort(), await freePort()];
  const atStore = commands.filter((command) => command.endsWith('--state-dir ./store'));
  const [serveStore = '', addProduct = '', issue = ''] = atStore;
  const storeArgs = `${serveStore.replace(prefix, '')} --listen 127.0.0.1:${port}`;
  await using _authority = await serving(storeArgs, folder.path, 'store');
  const followIt = (command: string): Promise<string> => follow(command, folder.path, port);
  const product = JSON.parse(await followIt(`${addProduct} --json`)) as {
    product_key: string;
    secret: string;
  };
  const sold = JSON.parse(await followIt(`${issue.replace('KEY', product.product_key)} --json`)) as {
    license: { license_key: string };
  };
  const [init = '', serve = '', verify = ''] = commands.filter(isBesideStore);
  // A test cannot type the secret, and another test may be about to take the next port.
  writeFileSync(join(folder.path, 'product.secret'), product.secret, { mode: 0o600 });
  const instead = `--secret-file ./product.secret --listen 127.0.0.1:${agentPort}`;
  await followIt(`${init.replace('KEY', product.product_key)} ${instead}`);
  await using _agent = await serving(serve.replace(prefix, ''), folder.path, 'agent/latchkey-state');
  const answer = await followIt(`${verify.replace('LICENSE_KEY', sold.license.license_key)} --json`);
  expect(JSON.parse(answer)).toMatchObject({ license_key: sold.license.license_key, enabled: true });
});

test('every other command of the README is run by a test or by CI', () => {
  const proven = [
    // .ci/run, which runs all tests
    /^npm (ci|test$|run check$|run test:all$)/,
    // the sandbox above
    /-- sandbox --port 18788 --credentials /,
    // test/e2e/sandbox.test.ts
    /-- sandbox --with-holder$/,
    /^curl /,
    // test/e2e/init.test.ts; that of the agent beside the central API above
    /-- init( --config \.\/agent\/.*)?$/,
    /-- (serve|status|verify|outbox|sync|config|token|audit|license history|backup|doctor|service) ?/,
    /--state-dir \.\/store$/,
    // test/e2e/npm-package.test.ts, test/e2e/executable.test.ts, test/e2e/image.test.ts
    /^docker build --file examples\/Dockerfile /,
    /^npm pack && npm install --global /,
    /^npm run build:executable && sudo install dist\/executable\/latchkey /,
  ];
  expect(commands.filter((command) => !proven.some((pattern) => pattern.test(command)))).toEqual([]);
});
