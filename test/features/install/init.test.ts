import { generateKeyPairSync } from 'node:crypto';
import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { choosePaths, writePath } from '../../../src/features/install/init/paths.ts';
import { formatPlan } from '../../../src/features/install/init/plan.ts';
import { findConfigurationFiles, type Machine, pipeOf } from '../../../src/config/defaults.ts';
import { foreignStores } from '../../../src/config/foreign-stores.ts';
import { formatConfigError } from '../../../src/config/errors.ts';
import { loadConfiguration } from '../../../src/config/load.ts';
import { foreignStoreNames } from '../../../src/domain/header-names.ts';
import { configurationOf } from '../../support/builders/config-builders.ts';
import { latchkey } from '../../support/process/command-line.ts';
import { startPlainUpstream, type PlainUpstream } from '../../support/harness/plain-upstream.ts';
import { startRealStore } from '../../support/harness/real-store.ts';
import { accessToken, openGumroad, permalink, productId } from '../../support/stores/gumroad.ts';
import { isWindows } from '../../support/platform.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const secret = 'the-product-secret';

function startStore(): Promise<PlainUpstream> {
  return startPlainUpstream({ apiKey: 'the-api-key', products: [{ productKey: 'RGsF', secret }] });
}

test('init without a terminal asks nothing and names the missing options', async () => {
  await using directory = temporaryDirectory();
  const config = join(directory.path, 'latchkey.yaml');
  const ask = async (...argv: string[]): Promise<unknown> =>
    await latchkey('init', '--config', config, ...argv);
  expect(await ask()).toMatchObject({
    code: 2,
    err: expect.stringContaining(
      'pass these options: --authority, or --upstream-url URL --product KEY --secret-file FILE, or --store NAME --product KEY, or --issuer URL',
    ) as string,
  });
  expect(await ask('--upstream-url', 'https://api.example.com')).toMatchObject({
    code: 2,
    err: expect.stringContaining('pass these options: --product KEY --secret-file FILE') as string,
  });
  expect(await ask('--authority', '--product', 'RGsF')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--product is for an agent') as string,
  });
  expect(existsSync(config)).toBe(false);
});

async function init(directory: string, url: string, given: string, ...argv: string[]) {
  const secretFile = join(directory, 'rgsf.secret');
  writeFileSync(secretFile, given, { mode: 0o600 });
  const options = ['--upstream-url', url, '--product', 'RGsF', '--secret-file', secretFile];
  return await latchkey('init', '--config', join(directory, 'latchkey.yaml'), ...options, ...argv);
}

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'init writes an agent if the store accepts its credentials, and prints the next steps',
  async () => {
    await using directory = temporaryDirectory();
    await using store = await startStore();
    const config = join(directory.path, 'latchkey.yaml');
    const { code, out, err } = await init(directory.path, store.url, secret, '--json');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(out)).toMatchObject({
      file: config,
      role: 'agent',
      state_dir: join(directory.path, 'latchkey-state'),
      next: [`latchkey --config ${config} serve`, `latchkey --config ${config} status`],
    });
    const text = readFileSync(config, 'utf8');
    expect(text).toContain('secret_file: ./rgsf.secret');
    expect(text + out).not.toContain(secret);
    expect((await latchkey('config', 'check', '--connect', '--config', config)).code).toBe(0);
  },
);

test('init writes no agent if the store refuses the secret, unless --unchecked is given', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore();
  const config = join(directory.path, 'latchkey.yaml');
  const refused = await init(directory.path, store.url, 'another-secret');
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toContain('fail  the secret of product RGsF: ');
  expect(refused.err).toContain(
    'latchkey: some checks failed: nothing was written\nTo write it anyway: --unchecked\n',
  );
  expect(existsSync(config)).toBe(false);
  expect(await init(directory.path, store.url, 'another-secret', '--unchecked')).toMatchObject({ code: 0 });
  expect(existsSync(config)).toBe(true);
  const checked = await latchkey('config', 'check', '--connect', '--config', config, '--json');
  expect(checked.code).toBe(1);
  expect(JSON.parse(checked.out)).toMatchObject({
    ok: false,
    findings: expect.arrayContaining([expect.objectContaining({ level: 'fail' })]) as unknown,
  });
});

test.skipIf(isWindows)(
  'init --store writes an agent of the store that config check and doctor accept, and asks nothing',
  async () => {
    await using directory = temporaryDirectory();
    await using gumroad = await openGumroad();
    const config = join(directory.path, 'latchkey.yaml');
    const tokenFile = join(directory.path, 'access-token');
    writeFileSync(tokenFile, accessToken, { mode: 0o600 });
    const product = ['--product', productId];
    const store = ['--store', 'gumroad', '--upstream-url', gumroad.url, '--access-token-file', tokenFile];
    const { code, out, err } = await latchkey('init', '--config', config, ...store, ...product);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(`ok    gumroad answers for the product ${productId}`);
    expect(out).toContain(`an agent in front of ${gumroad.url}`);
    expect(out).toContain(`Start it: latchkey --config ${config} serve`);
    const text = readFileSync(config, 'utf8');
    expect(text).toContain('access_token_file: ./access-token');
    expect(text + out).not.toContain(accessToken);
    expect(await latchkey('config', 'check', '--connect', '--config', config)).toMatchObject({ code: 0 });
    const doctor = await latchkey('doctor', '--config', config);
    expect(doctor.out).toContain(`ok    gumroad answers for the product ${productId}`);
    expect(doctor.out).not.toContain('fail  gumroad');

    const another = ['init', '--config', join(directory.path, 'other.yaml'), ...store];
    expect(await latchkey(...another)).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        'pass the product_id (Content, under the license key): --product',
      ) as string,
    });
    const wrong = await latchkey(...another, '--product', `https://seller.gumroad.com/l/${permalink}`);
    expect(wrong.err).toContain('products[0].key: must be the key of the product');
  },
);

test('init refuses options that are not for an agent of a store', async () => {
  await using directory = temporaryDirectory();
  const config = join(directory.path, 'latchkey.yaml');
  const ask = async (...argv: string[]): Promise<string> => {
    const { code, err } = await latchkey('init', '--config', config, ...argv);
    expect(code).toBe(2);
    return err;
  };
  for (const option of ['--secret-file', '--api-key-file'])
    expect(await ask('--store', 'gumroad', '--product', 'A', option, config)).toContain(
      `${option} cannot be given with --store`,
    );
  expect(await ask('--authority', '--store', 'gumroad')).toContain('--store is for an agent');
  expect(await ask('--upstream-url', 'https://a.example', '--access-token-file', config)).toContain(
    '--access-token-file is for an agent of a store: add --store',
  );
  expect(await ask('--product', 'A', '--product', 'B')).toContain('--product: give one with its secret');
});

test.each(foreignStoreNames)('the configuration that init writes for %s has its defaults', (foreign) => {
  const products = ['1e5', 'B'];
  const base = { stateDir: './a b', tcp: '127.0.0.1:8787', socket: null };
  const text = formatPlan({
    ...base,
    store: { foreign, baseUrl: null, accessToken: { text: 'a # token' }, products },
  });
  const loaded = load(text);
  if (!loaded.ok) throw new Error(loaded.errors.map(formatConfigError).join('\n'));
  expect(loaded.configuration).toMatchObject({
    role: 'agent',
    upstream: { store: foreign, baseUrl: foreignStores[foreign].baseUrl },
    products: [{ key: '1e5' }, { key: 'B' }],
  });
  expect(loaded.configuration.upstream?.accessToken?.reveal()).toBe('a # token');
});

// Windows has no permission bits.
test.skipIf(isWindows)('init writes no agent if every user can read its secret', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore();
  const secretFile = join(directory.path, 'rgsf.secret');
  writeFileSync(secretFile, '', { mode: 0o644 });
  const { code, err } = await init(directory.path, store.url, secret);
  expect(code).toBe(1);
  expect(err).toContain(`fail  ${secretFile} can be read by every user of this machine`);
  expect(existsSync(join(directory.path, 'latchkey.yaml'))).toBe(false);
});

test('init does not replace a file that was created during the checks', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore();
  const config = join(directory.path, 'latchkey.yaml');
  store.fault = () => {
    writeFileSync(config, 'mine\n');
    return undefined;
  };
  const { code, err } = await init(directory.path, store.url, secret);
  expect([code, err]).toEqual([
    1,
    `latchkey: ${config} cannot be written: file already exists: nothing was written\n`,
  ]);
  expect(readFileSync(config, 'utf8')).toBe('mine\n');
});

test('init writes the detected dialect', async () => {
  await using directory = temporaryDirectory();
  await using store = await startRealStore({
    apiKey: 'the-api-key',
    products: [{ productKey: 'RGsF', secret }],
  });
  const config = join(directory.path, 'latchkey.yaml');
  const wrong = await init(directory.path, store.url, secret, '--dialect', 'specification');
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain('speaks the dialect payhip, but upstream.dialect is specification');
  expect(await init(directory.path, store.url, secret)).toMatchObject({ code: 0 });
  expect(readFileSync(config, 'utf8')).toMatch(/^ +dialect: payhip$/m);
});

test('init writes no agent if the store is unavailable or its URL is invalid', async () => {
  await using directory = temporaryDirectory();
  const away = await init(directory.path, 'http://127.0.0.1:1', secret);
  expect(away.err).toContain('fail  http://127.0.0.1:1 cannot be reached');
  const none = await init(directory.path, 'api.example.com', secret, '--unchecked');
  expect(none).toMatchObject({ code: 78, out: '' });
  expect(none.err).toContain('latchkey: upstream.base_url: must be an http or https URL');
  expect(existsSync(join(directory.path, 'latchkey.yaml'))).toBe(false);
});

// Its paths are those of POSIX.
test.skipIf(isWindows)(
  'init writes the given address and state directory, and no LATCHKEY_ variable',
  async () => {
    await using directory = temporaryDirectory();
    const config = join(directory.path, 'latchkey.yaml');
    const stateDir = join(directory.path, 'mine');
    vi.stubEnv('LATCHKEY_LOG__LEVEL', 'no such level');
    const argv = ['--config', config, '--state-dir', stateDir, '--listen', '127.0.0.1:9'];
    const { code, out } = await latchkey('init', '--authority', ...argv);
    expect([code, out]).toEqual([
      0,
      expect.stringContaining(`Wrote ${config} (mode 0600): an authority on http://127.0.0.1:9\n`),
    ]);
    vi.unstubAllEnvs();
    expect(loadConfiguration({ file: config, environment: {} })).toMatchObject({
      configuration: {
        stateDir,
        listen: { tcp: [{ port: 9 }], socket: join(stateDir, 'latchkey.sock') },
      },
    });
  },
);

test.skipIf(process.getuid?.() !== 0)(
  'init --force keeps mode 0640 of a configuration for a service',
  async () => {
    await using directory = temporaryDirectory();
    const config = join(directory.path, 'config.yaml');
    writeFileSync(config, '', { mode: 0o640 });
    chownSync(config, 0, 54_321);
    const { out } = await latchkey('init', '--authority', '--force', '--config', config);
    expect(out).toContain('(mode 0640)');
    expect(statSync(config)).toMatchObject({ uid: 0, gid: 54_321 });
  },
);

const store = {
  baseUrl: 'https://api.example.com/shop',
  dialect: 'payhip',
  apiKey: { text: 'a # key: "quoted"' },
  products: [
    { key: '1e5', secret: { text: '0012' } },
    { key: 'true', secret: { text: "*it's*" } },
  ],
} as const;
const plan = { stateDir: './a b', tcp: '127.0.0.1:8787', socket: null, store };
const load = (text: string) => loadConfiguration({ file: '/srv/latchkey.yaml', text, environment: {} });

// Its paths are those of POSIX.
test.skipIf(isWindows)('init quotes every value, so that any character is read back', () => {
  const loaded = load(formatPlan(plan));
  expect(loaded).toMatchObject({
    ok: true,
    configuration: {
      stateDir: '/srv/a b',
      upstream: { baseUrl: store.baseUrl, dialect: 'payhip' },
      products: [{ key: '1e5' }, { key: 'true' }],
    },
  });
  const { upstream, products } = loaded.ok ? loaded.configuration : { upstream: null, products: [] };
  expect([upstream?.apiKey, ...products.map((product) => product.secret)].map((it) => it?.reveal())).toEqual([
    'a # key: "quoted"',
    '0012',
    "*it's*",
  ]);
});

test('the comments that init writes contain the defaults', () => {
  const foreign = { foreign: 'gumroad', baseUrl: null, accessToken: null, products: ['A'] } as const;
  for (const role of [store, { ...store, apiKey: null }, foreign, null]) {
    const each = { ...plan, store: role };
    const text = formatPlan(each);
    const open = text.replaceAll(/^( *)#(?! )/gm, '$1');
    expect(open).not.toBe(text);
    const [closed, opened] = [load(text), load(open)];
    if (!opened.ok) throw new Error(opened.errors.map(formatConfigError).join('\n'));
    expect(opened.configuration).toEqual(closed.ok && closed.configuration);
  }
});

const windowsMachine: Machine = {
  environment: {
    LOCALAPPDATA: String.raw`C:\Users\Ada\AppData\Local`,
    ProgramData: String.raw`C:\ProgramData`,
  },
  home: String.raw`C:\Users\Ada`,
  platform: 'win32',
};

test('on Windows init writes paths with backslashes, and leaves out the pipe, which is the default', () => {
  const target = String.raw`C:\shop\latchkey.yaml`;
  const { stateDir, socket } = choosePaths(target, undefined, windowsMachine);
  expect({ stateDir, socket }).toEqual({ stateDir: String.raw`C:\shop\latchkey-state`, socket: null });
  expect(writePath(stateDir, target, 'win32')).toBe(String.raw`.\latchkey-state`);
  expect(writePath(String.raw`D:\state`, target, 'win32')).toBe(String.raw`D:\state`);
  const paths = { stateDir: writePath(stateDir, target, 'win32'), socket };
  const text = formatPlan({ ...paths, tcp: '127.0.0.1:8787', store: null }, 'win32');
  expect(text).toContain(String.raw`state_dir: .\latchkey-state` + '\n');
  expect(text).not.toMatch(/^ *socket:/m);
  expect(text).not.toMatch(/SIGHUP|\.sock|\.\//);
  const configuration = configurationOf({ platform: 'win32', text });
  expect(configuration.stateDir).toBe(String.raw`C:\srv\latchkey\latchkey-state`);
  expect(configuration.listen.socket).toBe(pipeOf(configuration.stateDir));
});

test('a configuration of Windows or macOS at a default path keeps its state in the default directory', () => {
  const [user, system] = findConfigurationFiles(windowsMachine);
  expect(choosePaths(user, undefined, windowsMachine)).toEqual({
    stateDir: String.raw`C:\Users\Ada\AppData\Local\Latchkey`,
    socket: null,
  });
  expect(choosePaths(system, undefined, windowsMachine).stateDir).toBe(String.raw`C:\ProgramData\Latchkey`);
  const mac: Machine = { environment: {}, home: '/Users/ada', platform: 'darwin' };
  expect(findConfigurationFiles(mac).map((target) => choosePaths(target, undefined, mac).stateDir)).toEqual([
    '/Users/ada/Library/Application Support/Latchkey',
    '/Library/Application Support/Latchkey',
  ]);
});

test('init leaves out a socket whose path is too long on macOS', () => {
  const target = `/${'x'.repeat(76)}/latchkey.yaml`;
  const socketOn = (platform: NodeJS.Platform): string | null =>
    choosePaths(target, undefined, { environment: {}, home: '/home/ada', platform }).socket;
  expect(socketOn('linux')).toHaveLength(106);
  expect(socketOn('darwin')).toBeNull();
});

test.skipIf(isWindows)('init writes a holder of leases, whose configuration has no secret', async () => {
  await using directory = temporaryDirectory();
  const config = join(directory.path, 'latchkey.yaml');
  const root = join(directory.path, 'root-1.pub.jwk');
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(root, JSON.stringify(publicKey.export({ format: 'jwk' })));
  const options = ['--issuer', 'http://127.0.0.1:9', '--root', root, '--product', 'RGsF'];
  const refused = await latchkey('init', '--config', config, ...options);
  expect(refused).toMatchObject({
    code: 1,
    err: expect.stringContaining('the issuer http://127.0.0.1:9 cannot be reached') as string,
  });
  const written = await latchkey('init', '--config', config, ...options, '--unchecked', '--json');
  expect(JSON.parse(written.out)).toMatchObject({ role: 'holder' });
  const loaded = loadConfiguration({ file: config, environment: {} });
  if (!loaded.ok) throw new Error(loaded.errors.map(formatConfigError).join('\n'));
  expect(loaded.configuration).toMatchObject({
    role: 'holder',
    leases: { issuer: 'http://127.0.0.1:9', roots: [root] },
    products: [{ key: 'RGsF', secret: null }],
  });
  const other = join(directory.path, 'other.yaml');
  for (const option of [
    ['--authority'],
    ['--upstream-url', 'https://a.example'],
    ['--secret-file', root],
    ['--api-key-file', root],
    ['--dialect', 'payhip'],
    ['--store', 'gumroad'],
  ]) {
    expect(await latchkey('init', '--config', other, ...options, ...option)).toMatchObject({
      code: 2,
      err: expect.stringContaining(`${option[0]} is not for a holder`) as string,
    });
  }
  expect(await latchkey('init', '--config', other, '--issuer', 'https://a.example')).toMatchObject({
    code: 2,
    err: expect.stringContaining('a holder needs --issuer URL --root FILE --product KEY') as string,
  });
});
