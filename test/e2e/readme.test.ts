import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../support/network/free-port.ts';
import { takeUsualPort } from '../support/network/usual-port.ts';
import { startPlainUpstream } from '../support/harness/plain-upstream.ts';
import { hasProgram } from '../support/process/installed.ts';
import { onTerminal } from '../support/process/terminal.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { patience, patienceMs } from '../support/patience.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const program = join(root, 'src/cli/main.ts');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const readme = read('README.md');
const run = promisify(execFile);

/** The commands of the shell blocks of a page, with continuation lines joined. */
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
const licenseKey = /license_key=([A-Z0-9-]+)/.exec(readme)?.[1] ?? '';
const prefix = 'npm run latchkey -- ';

test('the README begins with one command for a fresh machine, and CI runs its parts', () => {
  expect(commands[0]).toBe('npm ci && npm run demo');
  for (const part of ['npm ci', 'npm run demo', 'npm run check', 'npm run test:all'])
    expect(read('.ci/run')).toContain(part);
});

test('the README has at most 7,000 bytes, and its links lead to files', () => {
  expect(Buffer.byteLength(readme)).toBeLessThanOrEqual(7_000);
  const targets = [...readme.matchAll(/\]\(([^)#:]+)\)|src="([^"]+)"/g)].map(
    ([, link, image]) => link ?? image,
  );
  expect(targets.length).toBeGreaterThan(15);
  expect(targets.filter((target) => !existsSync(join(root, target ?? '')))).toEqual([]);
});

/** What a person gets who clones this repository and runs `npm ci`. */
function clone(folder: string): void {
  for (const path of ['package.json', 'package-lock.json', '.npmrc', 'src'])
    cpSync(join(root, path), join(folder, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
}

/** Runs a command in a folder until it ends; returns what it printed. Rejects if it fails. */
async function finish(command: string, folder: string, home: string): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: home };
  const { stdout } = await run('bash', ['-c', command], { cwd: folder, env, timeout: patienceMs });
  return stdout;
}

/** Runs a command in a terminal of its own until it is disposed of, and waits for this text on standard output. */
async function keepRunning(
  command: string,
  { folder, home, text }: { folder: string; home: string; text: string },
): Promise<AsyncDisposable> {
  const env = { PATH: process.env['PATH'], HOME: home };
  const child = spawn('bash', ['-c', command], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  let isEnded = false;
  // Every process that has the standard output has ended then.
  const ended = once(child, 'close').finally(() => {
    isEnded = true;
  });
  const end = async (): Promise<void> => {
    // Ctrl-C reaches each process of the terminal.
    if (!isEnded && child.pid !== undefined) process.kill(-child.pid, 'SIGINT');
    await ended;
  };
  try {
    await vi.waitFor(() => expect(said, command).toContain(text), patience);
  } catch (error) {
    await end();
    throw error;
  }
  return { [Symbol.asyncDispose]: end };
}

/** What `serve` and `sandbox` say once they answer. */
const [serving, sandboxed] = ['"msg":"ready"', 'Ctrl-C ends it'];

const [tryIt = '', sandbox = '', serve = '', verify = '', use = '', ...others] = commandsOf(
  readme.split('\n## Install\n', 1)[0] ?? '',
);
const looks = others.slice(0, 4);
const [init = '', serveOwn = '', ...rest] = others.slice(4);

test.skipIf(!hasProgram('script'))(
  "the README's commands from top to bottom, in a new clone and with an empty home, run the demo, get 200 from a sandbox, and serve another store",
  async () => {
    await using folder = temporaryDirectory();
    await using home = temporaryDirectory();
    await using _port = await takeUsualPort();
    const port = await freePort();
    const here = { folder: folder.path, home: home.path };
    clone(folder.path);
    const follow = (command: string): Promise<string> => finish(command, folder.path, home.path);
    const onPort = (command: string): string => command.replace('127.0.0.1:8787', `127.0.0.1:${port}`);
    const call = async (command: string): Promise<{ status: number; body: unknown }> => {
      const [body = '', status] = (
        await follow(command.replace(/^curl /, String.raw`curl -sS -w '\n%{http_code}' `))
      ).split('\n');
      return { status: Number(status), body: JSON.parse(body) };
    };

    // node_modules is there already.
    expect(await follow(tryIt.replace('npm ci && ', ''))).toContain('Every step succeeded.');

    const store = await keepRunning(sandbox, { ...here, text: sandboxed });
    const configuration = join(folder.path, 'latchkey.yaml');
    const written = readFileSync(configuration, 'utf8');
    writeFileSync(configuration, onPort(written));
    {
      await using _agent = await keepRunning(serve, { ...here, text: serving });
      const answered = (uses: number) => ({
        status: 200,
        body: { data: expect.objectContaining({ license_key: licenseKey, enabled: true, uses }) as unknown },
      });
      expect(await call(onPort(verify))).toEqual(answered(0));
      expect(await call(onPort(use))).toEqual(answered(1));
      const usesAtStore = async (): Promise<unknown> => {
        const { upstream } = parse(written) as { upstream: { base_url: string } };
        const atStore = verify.replace('http://127.0.0.1:8787', upstream.base_url);
        return ((await call(atStore)).body as { data: { uses: number } }).data.uses;
      };
      await vi.waitFor(async () => expect(await usesAtStore()).toBe(1), patience);
      await store[Symbol.asyncDispose]();
      expect(await call(onPort(verify))).toEqual(answered(1));
      expect(await call(onPort(use))).toEqual(answered(2));
      // The test has changed the port in the configuration, so the sandbox must find the file that it wrote.
      writeFileSync(configuration, written);
      await using _store = await keepRunning(sandbox, { ...here, text: sandboxed });
      writeFileSync(configuration, onPort(written));
      await vi.waitFor(async () => expect(await usesAtStore()).toBe(2), patience);
      expect(looks).toHaveLength(4);
      for (const [index, expected] of [/^upstream +up/m, /outbox|operation/i, /usage/, /^ok /m].entries())
        expect(await follow(looks[index] ?? ''), looks[index]).toMatch(expected);
    }

    const product = { productKey: 'Wq7Tn', secret: 'the-secret-of-my-store' };
    const [ownKey, buyerEmail] = ['LICENSE-KEY-OF-MY-STORE', 'buyer@example.com'];
    await using ownStore = await startPlainUpstream({
      apiKey: 'the-api-key',
      products: [product],
      licenses: [{ licenseKey: ownKey, productKey: product.productKey, buyerEmail }],
    });
    const words = { program: prefix.trim().split(' '), home: home.path };
    await using terminal = onTerminal(init.replace(prefix, '').split(' '), folder.path, words);
    await terminal.answer('What should Latchkey run as?', '\r');
    await terminal.answer('Base URL of the store', `${ownStore.url}\r`);
    await terminal.answer('Product key', `${product.productKey}\r`);
    await terminal.answer(`Secret of product ${product.productKey}`, `${product.secret}\r`);
    await terminal.answer('Another product?', '\r');
    await terminal.answer('API key', '\r');
    expect(await terminal.ended, terminal.screen).toBe(0);
    await using _own = await keepRunning(serveOwn, { ...here, text: serving });
    const listening = readFileSync(join(folder.path, 'agent/latchkey-state/listen.json'), 'utf8');
    const { tcp } = JSON.parse(listening) as { tcp: string };
    const ownVerify = verify
      .replace('http://127.0.0.1:8787', tcp)
      .replace(licenseKey, ownKey)
      .replace('the-product-secret', product.secret);
    expect(await call(ownVerify)).toMatchObject({ status: 200, body: { data: { license_key: ownKey } } });
    expect(rest).toEqual([]);
  },
);

/** Runs a command of a guide as a user would, but on a free port. */
async function followGuide(command: string, folder: string, port: number): Promise<string> {
  const here = command.replaceAll('127.0.0.1:8787', `127.0.0.1:${port}`);
  return await finish(here.replace(/^latchkey /, `'${process.execPath}' '${program}' `), folder, folder);
}

function servingGuide(command: string, folder: string): Promise<AsyncDisposable> {
  const line = command.replace(/^latchkey /, `'${process.execPath}' '${program}' `);
  return keepRunning(`exec ${line}`, { folder, home: folder, text: serving });
}

const sellerSteps = commandsOf(read('examples/guides/seller.md')).filter((command) =>
  command.endsWith('--state-dir ./store'),
);

test("a central API run by the commands of the seller's guide sells, refunds, discounts and imports another store's sales", async () => {
  await using folder = temporaryDirectory();
  const port = await freePort();
  const [serveStore = '', ...steps] = sellerSteps;
  const command = `${serveStore} --listen 127.0.0.1:${port}`;
  await using _authority = await servingGuide(command, folder.path);
  const [apiKey, secret] = ['the-key-of-the-shop', 'the-secret-of-rgsf'];
  writeFileSync(join(folder.path, 'shop.key'), `${apiKey}\n`);
  writeFileSync(join(folder.path, 'rgsf.secret'), `${secret}\n`);
  for (const [file, lines] of Object.entries({
    'licenses.csv': ['Key,Mail', 'OLD-KEY-0,buyer@example.com'],
    'keys.csv': [
      'license_key,buyer_email,status,Valid until',
      'OLD-KEY-2,buyer@example.com,trial,',
      'OLD-KEY-3,buyer@example.com,revoked,2020-01-01',
    ],
    'sales.csv': [
      'Purchase ID,Purchase Email,Product ID,License Key,License Key Enabled?',
      'S1,buyer@example.com,RGsF,OLD-KEY-4,1',
    ],
  }))
    writeFileSync(join(folder.path, file), lines.join('\n'));
  const known: Record<string, string> = {};
  const answers: unknown[] = [];
  // A coupon is changed only after it was created.
  const isLater = (step: string): boolean => step.includes('COUPON_ID');
  const inOrder = [...steps.filter((step) => !isLater(step)), ...steps.filter(isLater)];
  for (const step of inOrder) {
    const filled = step
      .replace('COUPON_ID', known['coupon_id'] ?? '')
      .replace('LICENSE_KEY', known['license_key'] ?? '')
      .replace('update KEY', `update ${known['product_key']}`)
      .replace('--product KEY', `--product ${known['product_key']}`)
      .replace(' KEY=', ` ${known['product_key']}=`)
      .replace('PURCHASE_ID', known['purchase_id'] ?? '')
      .replace('ACCOUNT_ID', known['account_id'] ?? '');
    const answer: unknown = JSON.parse(await followGuide(`${filled} --json`, folder.path, port));
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
  const path = '/api/v2/license/verify?license_key=OLD-KEY-1';
  expect(await call(path, { 'product-secret-key': secret })).toMatchObject({
    data: { date: '2024-02-22T11:23:05+00:00', uses: 3, enabled: true },
  });
});

test('an agent beside the central API, set up as the guide says, verifies the keys that the central API sold', async () => {
  await using folder = temporaryDirectory();
  const [port, agentPort] = [await freePort(), await freePort()];
  const [serveStore = '', addProduct = '', issue = ''] = sellerSteps;
  const command = `${serveStore} --listen 127.0.0.1:${port}`;
  await using _authority = await servingGuide(command, folder.path);
  const followIt = (each: string): Promise<string> => followGuide(each, folder.path, port);
  const product = JSON.parse(await followIt(`${addProduct} --json`)) as {
    product_key: string;
    secret: string;
  };
  const sold = JSON.parse(await followIt(`${issue.replace('KEY', product.product_key)} --json`)) as {
    license: { license_key: string };
  };
  const guide = commandsOf(read('examples/guides/agents-and-authority.md'));
  const [initAgent = '', serveAgent = '', verifySold = ''] = guide.filter((each) =>
    each.includes('./agent/'),
  );
  // A test cannot type the secret, and another test may be about to take the next port.
  writeFileSync(join(folder.path, 'product.secret'), product.secret, { mode: 0o600 });
  const instead = `--secret-file ./product.secret --listen 127.0.0.1:${agentPort}`;
  await followIt(`${initAgent.replace('KEY', product.product_key)} ${instead}`);
  await using _agent = await servingGuide(serveAgent, folder.path);
  const answer = await followIt(`${verifySold.replace('LICENSE_KEY', sold.license.license_key)} --json`);
  expect(JSON.parse(answer)).toMatchObject({ license_key: sold.license.license_key, enabled: true });
});

test('every other command of the README is run by a test', () => {
  const top = new Set([tryIt, sandbox, serve, verify, use, ...looks, init, serveOwn]);
  const proven = [
    // test/e2e/npm-package.test.ts, test/e2e/executable.test.ts
    /^npm pack && npm install --global /,
    /^npm run build:executable && sudo install dist\/executable\/latchkey /,
  ];
  const outside = commands.filter((command) => !top.has(command));
  expect(outside.filter((command) => !proven.some((pattern) => pattern.test(command)))).toEqual([]);
  // test/e2e/executable.test.ts, test/e2e/debian-package.test.ts, test/e2e/console, test/e2e/sandbox.test.ts, .ci/run
  const inSentences = [...readme.matchAll(/`(npm [^`]+)`/g)].map(([, command]) => command);
  expect(new Set(inSentences)).toEqual(
    new Set([
      'npm ci',
      'npm run build:executable -- --arch arm64',
      'npm run build:deb',
      'npm run latchkey -- console',
      'npm run latchkey -- sandbox --demo-data --with-agent',
      'npm test',
      'npm run check',
    ]),
  );
});
