import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ownProgram, runProcess, type Outcome } from '../support/process/command-line.ts';
import { type DaemonProcess, serveIn } from '../support/process/daemon-process.ts';
import { takeUsualPort } from '../support/network/usual-port.ts';
import { hasProgram } from '../support/process/installed.ts';
import { startPlainUpstream, type PlainUpstream } from '../support/harness/plain-upstream.ts';
import { keys, openGumroad, productId } from '../support/stores/gumroad.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { onTerminal } from '../support/process/terminal.ts';

const secret = 'the-product-secret';
const enter = '\r';
const down = '\u001B[B';

function startStore(): Promise<PlainUpstream> {
  return startPlainUpstream({
    apiKey: 'the-api-key',
    products: [{ productKey: 'RGsF', secret }],
    licenses: [{ licenseKey: 'K', productKey: 'RGsF', buyerEmail: 'buyer@example.com' }],
  });
}

async function runIn(directory: string, ...argv: string[]): Promise<Outcome> {
  return await runProcess(argv, { HOME: '/nonexistent' }, ownProgram, directory);
}

const modeOf = (file: string): number => statSync(file).mode & 0o777;

describe.skipIf(!hasProgram('script'))('init at a terminal', () => {
  test('init at a terminal asks questions, checks the store, and writes an agent configuration that every command finds', async () => {
    await using _port = await takeUsualPort();
    await using directory = temporaryDirectory();
    await using store = await startStore();
    await using terminal = onTerminal(['init'], directory.path);
    await terminal.answer('What should Latchkey run as?', enter);
    await terminal.answer('Base URL of the store', `${store.url}${enter}`);
    await terminal.answer('Product key', `RGsF${enter}`);
    await terminal.answer('Secret of product RGsF', `${secret}${enter}`);
    await terminal.answer('Another product?', enter);
    await terminal.answer('API key', enter);
    expect(await terminal.ended, terminal.screen).toBe(0);
    expect(terminal.screen).toContain('ok    the secret of product RGsF is accepted');
    expect(terminal.screen).toContain('Wrote ./latchkey.yaml');
    expect(terminal.screen).not.toContain(secret);
    expect(modeOf(join(directory.path, 'latchkey.yaml'))).toBe(0o600);
    expect(await runIn(directory.path, 'config', 'check')).toMatchObject({
      code: 0,
      out: 'ok: ./latchkey.yaml (agent)\n',
    });
    await using _agent = await serveIn(directory.path);
    expect(await runIn(directory.path, 'verify', 'K')).toMatchObject({ code: 0, err: '' });
  });

  test('init repeats the question after a mistyped secret, and writes nothing before', async () => {
    await using directory = temporaryDirectory();
    await using store = await startStore();
    await using terminal = onTerminal(['init', '--upstream-url', store.url], directory.path);
    const asked = async (given: string): Promise<void> => {
      await terminal.answer('Secret of product RGsF', `${given}${enter}`);
      await terminal.answer('Another product?', enter);
      await terminal.answer('API key', enter);
    };
    await terminal.answer('Product key', `RGsF${enter}`);
    await asked('another-secret');
    await terminal.answer('fail  the secret of product RGsF', '');
    await terminal.answer('What now?', enter);
    expect(() => statSync(join(directory.path, 'latchkey.yaml'))).toThrow('ENOENT');
    await terminal.answer('Base URL of the store', enter);
    await terminal.answer('Product key', enter);
    await asked(secret);
    expect(await terminal.ended, terminal.screen).toBe(0);
    expect(readFileSync(join(directory.path, 'latchkey.yaml'), 'utf8')).toContain(`secret: ${secret}`);
  });

  test('init asks for the product of a store, and for another after a mistyped one', async () => {
    await using directory = temporaryDirectory();
    await using gumroad = await openGumroad();
    const store = ['--store', 'gumroad', '--upstream-url', gumroad.url];
    await using terminal = onTerminal(['init', ...store], directory.path);
    await terminal.answer('product_id of the product (Content, under', `https://a.example${enter}`);
    await terminal.answer('must be the key of the product', `\u0015${productId}${enter}`);
    await terminal.answer('Another product?', enter);
    await terminal.answer('Your access token at Gumroad', enter);
    expect(await terminal.ended, terminal.screen).toBe(0);
    expect(readFileSync(join(directory.path, 'latchkey.yaml'), 'utf8')).toContain(`- key: ${productId}\n`);
    await using _agent = await serveIn(directory.path);
    expect(await runIn(directory.path, 'verify', keys.good)).toMatchObject({ code: 0, err: '' });
  });

  test('init offers each store that a program may be written for', async () => {
    await using directory = temporaryDirectory();
    await using terminal = onTerminal(['init'], directory.path);
    await terminal.answer('an agent of Gumroad', `${down}${enter}`);
    await terminal.answer('product_id of the product', '\u0003');
    expect(await terminal.ended).toBe(1);
  });

  test('init that is interrupted by Ctrl-C leaves nothing behind', async () => {
    await using directory = temporaryDirectory();
    await using terminal = onTerminal(['init'], directory.path);
    await terminal.answer('What should Latchkey run as?', `${down}\u0003`);
    expect(await terminal.ended).toBe(1);
    expect(terminal.screen).toContain('latchkey: cancelled: nothing was written');
    expect(() => statSync(join(directory.path, 'latchkey.yaml'))).toThrow('ENOENT');
  });
});

test('init --authority writes an authority that starts although the default port is in use', async () => {
  await using _port = await takeUsualPort();
  await using first = temporaryDirectory();
  await using second = temporaryDirectory();
  const start = async (directory: string): Promise<DaemonProcess> => {
    expect((await runIn(directory, 'init', '--authority')).code).toBe(0);
    return await serveIn(directory);
  };
  await using one = await start(first.path);
  await using other = await start(second.path);
  expect(one.tcp).not.toBe(other.tcp);
  expect(readFileSync(join(second.path, 'latchkey.yaml'), 'utf8')).toContain(
    other.tcp.slice('http://'.length),
  );
  for (const { path } of [first, second]) expect((await runIn(path, 'product', 'list')).code).toBe(0);
});

test('init replaces an existing file only if --force is given', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'latchkey.yaml');
  writeFileSync(file, 'state_dir: ./mine\n', { mode: 0o644 });
  expect(await runIn(directory.path, 'init', '--authority')).toEqual({
    code: 1,
    out: '',
    err:
      'latchkey: ./latchkey.yaml already exists: nothing was written\n' +
      'To replace it: --force. To write another file: --config FILE\n',
  });
  expect(readFileSync(file, 'utf8')).toBe('state_dir: ./mine\n');
  expect((await runIn(directory.path, 'init', '--authority', '--force')).code).toBe(0);
  expect(modeOf(file)).toBe(0o600);
});
