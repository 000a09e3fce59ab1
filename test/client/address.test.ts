import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findAddresses, type AddressOptions } from '../../src/client/address.ts';
import {
  credentialHeader,
  credentialScope,
  type CredentialKind,
  type CredentialOptions,
} from '../../src/client/credential.ts';
import { connect } from '../../src/client/index.ts';
import { startSandbox } from '../../src/testing.ts';
import { identityOf } from '../../src/store/sqlite/files/private-file.ts';
import { isWindows } from '../support/platform.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

let directory: TemporaryDirectory;
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await directory[Symbol.asyncDispose]();
});

/** What a running agent writes into its state directory. */
function writeListen(stateDir: string, listen: object = {}): string {
  mkdirSync(stateDir, { recursive: true });
  const file = join(stateDir, 'listen.json');
  const addresses = { tcp: 'http://127.0.0.1:4711', socket: join(stateDir, 'a.sock'), instance: 'i' };
  writeFileSync(file, JSON.stringify({ ...addresses, ...listen }), { mode: 0o600 });
  return file;
}

function found(options: AddressOptions, environment: Record<string, string> = {}): string[] {
  return findAddresses(options, environment).map((address) =>
    address.kind === 'socket' ? address.path : address.url.origin,
  );
}

// Its paths are those of POSIX.
it.skipIf(isWindows)('an address that the program names is the only one', () => {
  const environment = { LATCHKEY_URL: 'http://127.0.0.1:1', LATCHKEY_STATE_DIR: '/elsewhere' };
  expect(found({ url: 'http://localhost:2' }, environment)).toEqual(['http://localhost:2']);
  expect(found({ url: 'unix:/run/a.sock' }, environment)).toEqual(['/run/a.sock']);
  const stateDir = join(directory.path, 'state');
  writeListen(stateDir);
  expect(found({ stateDir }, environment)).toEqual([
    join(stateDir, 'a.sock'),
    'http://127.0.0.1:4711',
    join(stateDir, 'latchkey.sock'),
  ]);
});

// Its paths are those of POSIX.
it.skipIf(isWindows)('without options, the environment names the address', () => {
  expect(found({}, { LATCHKEY_URL: 'unix:/run/b.sock', LATCHKEY_STATE_DIR: '/elsewhere' })).toEqual([
    '/run/b.sock',
  ]);
  expect(found({}, { LATCHKEY_URL: '', LATCHKEY_STATE_DIR: '/elsewhere' })).toEqual([
    '/elsewhere/latchkey.sock',
  ]);
});

// Its paths are those of POSIX.
it.skipIf(isWindows)(
  'by default, the agent of this user is looked for first, then the agent of the machine',
  () => {
    const environment = { XDG_STATE_HOME: directory.path, XDG_RUNTIME_DIR: '/run/user/1' };
    const sockets = [
      '/run/user/1/latchkey/latchkey.sock',
      join(directory.path, 'latchkey', 'latchkey.sock'),
      '/run/latchkey/latchkey.sock',
    ];
    expect(found({}, environment)).toEqual(sockets);
    writeListen(join(directory.path, 'latchkey'), { tcp: null });
    expect(found({}, environment)).toEqual([join(directory.path, 'latchkey', 'a.sock'), ...sockets]);
  },
);

// Its paths are those of POSIX.
it.skipIf(isWindows)('without XDG_STATE_HOME, the agent is looked for in the home directory', () => {
  vi.stubEnv('HOME', directory.path);
  const stateDir = join(directory.path, '.local', 'state', 'latchkey');
  expect(found({})).toEqual([join(stateDir, 'latchkey.sock'), '/run/latchkey/latchkey.sock']);
});

it('an XDG variable with a relative path is ignored', () => {
  const relative = { XDG_STATE_HOME: 'state', XDG_RUNTIME_DIR: 'run' };
  expect(found({}, relative)).toEqual(found({}, {}));
});

// Windows has no permission bits.
it.skipIf(isWindows).each([0o620, 0o602])(
  'a listen.json that other users can write is ignored: mode %s',
  (mode) => {
    const file = writeListen(directory.path);
    chmodSync(file, mode);
    expect(found({ stateDir: directory.path })).toEqual([join(directory.path, 'latchkey.sock')]);
  },
);

it('a url that is not http, https or unix is rejected', () => {
  for (const url of ['127.0.0.1:8787', 'ftp://localhost', '']) {
    expect(() => found({ url })).toThrow('must be http://…, https://… or unix:/…');
  }
});

const given = { LATCHKEY_TOKEN: 'of the environment', LATCHKEY_TOKEN_FILE: '' };
it.for<[string, CredentialOptions, CredentialKind, Record<string, string>, object]>([
  [
    'the product secret, for license keys',
    { productSecret: 's', token: 't' },
    'productSecret',
    given,
    { 'product-secret-key': 's' },
  ],
  [
    'the API key, for coupons',
    { apiKey: 'a', productSecret: 's', token: 't' },
    'apiKey',
    given,
    { 'service-api-key': 'a' },
  ],
  [
    'its token, without a secret',
    { apiKey: 'a', token: 't' },
    'productSecret',
    given,
    { 'product-secret-key': 't' },
  ],
  [
    'the token of the environment, without options',
    {},
    'apiKey',
    given,
    { 'service-api-key': 'of the environment' },
  ],
  [
    'the token of the file, if LATCHKEY_TOKEN is empty',
    {},
    'apiKey',
    { LATCHKEY_TOKEN: '' },
    { 'service-api-key': 'of the file' },
  ],
])('a program sends %s', ([, options, kind, environment, header]) => {
  const file = join(directory.path, 'token');
  // What an existing store issued may have spaces in it.
  writeFileSync(file, ' of the file\n');
  const named = { LATCHKEY_TOKEN_FILE: file, ...environment };
  expect(credentialHeader(options, kind, named)).toEqual(header);
});

it('the scope of the last known verdicts is the secret, else the token, else the path of the token file', () => {
  const environment = { LATCHKEY_TOKEN: 'of-environment', LATCHKEY_TOKEN_FILE: '/token' };
  expect(credentialScope({ productSecret: 's', token: 't' }, environment)).toBe('s');
  expect(credentialScope({ token: 't' }, environment)).toBe('t');
  expect(credentialScope({}, environment)).toBe('of-environment');
  expect(credentialScope({}, { ...environment, LATCHKEY_TOKEN: '' })).toBe('/token');
});

it('an empty credential is rejected', () => {
  expect(() => credentialHeader({ token: ' ' }, 'apiKey', {})).toThrow('token is empty.');
  expect(() => credentialHeader({}, 'apiKey', {})).toThrow('Give connect() a token or an apiKey.');
});

it('a TCP address needs a credential', () => {
  const ask = (): unknown => credentialHeader({ url: 'http://127.0.0.1:8787' }, 'productSecret', {});
  expect(ask).toThrow('Give connect() a token or a productSecret.');
});

it('a program without options finds a running agent by its state directory and sends the token of the environment', async () => {
  await using sandbox = await startSandbox();
  writeFileSync(join(directory.path, 'token'), `${await sandbox.issueToken(['verify'])}\n`);
  vi.stubEnv('LATCHKEY_STATE_DIR', sandbox.agent.stateDir);
  vi.stubEnv('LATCHKEY_TOKEN_FILE', join(directory.path, 'token'));
  const program = connect();
  expect((await program.verify('WTKP4-66NL5-HMKQW-GFSCZ')).verdict).toBe('valid');
  await expect(program.use('WTKP4-66NL5-HMKQW-GFSCZ')).rejects.toMatchObject({ code: 'scope_missing' });
  vi.stubEnv('LATCHKEY_URL', `unix:${sandbox.agent.socket}`);
  expect((await connect().verify('WTKP4-66NL5-HMKQW-GFSCZ')).verdict).toBe('valid');
});

it.each(['LATCHKEY_TOKEN', 'LATCHKEY_TOKEN_FILE'])(
  'a product secret and an API key work in %s',
  async (name) => {
    await using sandbox = await startSandbox();
    await sandbox.store.createCoupon({ code: 'SPRING', coupon_type: 'multi', percent_off: 20 });
    vi.stubEnv('LATCHKEY_URL', sandbox.agent.url);
    const give = (credential: string): void => {
      const file = join(directory.path, 'credential');
      writeFileSync(file, `${credential}\n`);
      vi.stubEnv(name, name.endsWith('_FILE') ? file : credential);
    };
    give(sandbox.productSecret);
    expect((await connect().use('WTKP4-66NL5-HMKQW-GFSCZ')).license.uses).toBe(1);
    give(sandbox.apiKey);
    const cart = { code: 'SPRING', items: [{ productKey: sandbox.productKey, amount: 1000 }] };
    expect((await connect().quote(cart)).discount).toBe(200);
  },
);

// Its paths are those of POSIX.
it.skipIf(isWindows)('a program needs no credential on a socket with a grant', async () => {
  const path = join(directory.path, 'shop.sock');
  const grant = { scopes: ['verify'] };
  await using sandbox = await startSandbox({
    configuration: { listen: { sockets: [{ path, grant }] } },
  });
  const url = `unix:${path}`;
  expect((await connect({ url }).verify('WTKP4-66NL5-HMKQW-GFSCZ')).verdict).toBe('valid');
  await expect(connect({ url }).use('WTKP4-66NL5-HMKQW-GFSCZ')).rejects.toMatchObject({
    code: 'scope_missing',
  });
  vi.stubEnv('LATCHKEY_URL', `unix:${sandbox.agent.socket}`);
  await expect(connect().verify('WTKP4-66NL5-HMKQW-GFSCZ')).rejects.toMatchObject({
    code: 'credentials_missing',
  });
});

it('a missing or invalid credential is a ConfigurationError', async () => {
  await expect(connect().verify('KEY')).rejects.toThrow('Give connect() a token or a productSecret.');
  vi.stubEnv('LATCHKEY_TOKEN_FILE', join(directory.path, 'none'));
  await expect(connect().verify('KEY')).rejects.toThrow('LATCHKEY_TOKEN_FILE: ENOENT');
  await expect(connect({ token: 'two words' }).verify('KEY')).rejects.toThrow(
    'token is not a credential: it must be one word of printable ASCII.',
  );
});

it('in a copy of a state directory, the addresses of the original are not used', () => {
  const [stateDir, copy] = [join(directory.path, 'state'), join(directory.path, 'copy')];
  mkdirSync(stateDir);
  writeListen(stateDir, { directory: identityOf(stateDir) });
  cpSync(stateDir, copy, { recursive: true });
  expect(found({ stateDir })).toContain('http://127.0.0.1:4711');
  expect(found({ stateDir: copy })).toEqual([expect.stringContaining('latchkey')]);
});
