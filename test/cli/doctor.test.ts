import { once } from 'node:events';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { certificate } from '../support/network/certificate.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import {
  every,
  firewallPage,
  refusal,
  corruptBody,
  startPlainUpstream,
  type PlainUpstream,
} from '../support/harness/plain-upstream.ts';
import { listenSecurely } from '../support/network/listener.ts';
import { challengePage, startRealStore } from '../support/harness/real-store.ts';
import { openWriting } from '../../src/store/sqlite/connection.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import { buildOperation } from '../support/builders/operation-builders.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import {
  ownProgram,
  latchkey,
  type Outcome,
  type Program,
  runProcess,
} from '../support/process/command-line.ts';

const secret = 'product-secret-of-the-test';
const apiKey = 'api-key-of-the-test';

function startUpstream(): Promise<PlainUpstream> {
  return startPlainUpstream({ apiKey, products: [{ productKey: 'RGsF', secret }] });
}

type Upstream = Readonly<Record<string, unknown>>;

/** Asks the doctor about an agent whose state is in the directory. */
async function examine(directory: string, upstream: Upstream, given = secret): Promise<Outcome> {
  const secretFile = join(directory, 'rgsf.secret');
  writeFileSync(secretFile, given, { mode: 0o600 });
  const configuration = {
    state_dir: join(directory, 'state'),
    listen: { tcp: '127.0.0.1:0' },
    upstream,
    products: [{ key: 'RGsF', secret_file: secretFile }],
  };
  const file = join(directory, 'agent.yaml');
  writeFileSync(file, JSON.stringify(configuration), { mode: 0o600 });
  return await latchkey('doctor', '--config', file);
}

/** The lines of a level, without the word that names it. */
function linesOf({ out }: Outcome, level: 'ok' | 'warn' | 'fail'): string[] {
  return out.split('\n').flatMap((line) => (line.startsWith(level.padEnd(6)) ? [line.slice(6)] : []));
}

test('doctor reports a healthy agent and prints no secret', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const found = await examine(directory.path, { base_url: upstream.url, api_key: apiKey });
  expect(found).toMatchObject({ code: 0, err: '' });
  expect(linesOf(found, 'fail')).toEqual([]);
  expect(linesOf(found, 'ok')).toEqual([
    `the configuration is sound: ${directory.path}/agent.yaml (agent)`,
    `${directory.path}/rgsf.secret can be read only by its owner`,
    `${directory.path}/agent.yaml can be read only by its owner`,
    `the API answers at ${upstream.url}`,
    'the clock agrees with that of the upstream',
    'the upstream speaks the dialect specification, as configured',
    'the secret of product RGsF is accepted',
    'the API key is accepted',
  ]);
  expect(linesOf(found, 'warn')).toEqual([
    `no daemon runs here  →  start it: latchkey --config ${directory.path}/agent.yaml serve`,
    `state directory ${directory.path}/state does not exist yet  →  the first start creates it: latchkey --config ${directory.path}/agent.yaml serve`,
  ]);
  expect(found.out).not.toMatch(new RegExp(`${secret}|${apiKey}`));
  expect(upstream.ledger.map(({ kind }) => kind)).not.toContain('usage');
});

test('doctor reports each refused credential', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const found = await examine(directory.path, { base_url: upstream.url, api_key: 'wrong' }, 'wrong-too');
  expect(found.code).toBe(1);
  const fails = linesOf(found, 'fail');
  expect(fails).toHaveLength(2);
  expect(fails[0]).toMatch(
    /^the secret of product RGsF: HTTP 401.* → {2}check the secret in the configuration/,
  );
  expect(fails[1]).toMatch(/^the API key: HTTP 401/);
});

test.each(['bad request', 'empty', 'no data'] as const)(
  'doctor detects the dialect of a store that answers an unknown key with %s',
  async (unknown) => {
    await using directory = temporaryDirectory();
    await using store = await startRealStore({ apiKey, products: [{ productKey: 'RGsF', secret }], unknown });
    const upstream = { base_url: store.url, api_key: apiKey };
    const found = await examine(directory.path, upstream);
    expect(found.code).toBe(1);
    expect(linesOf(found, 'fail')).toEqual([
      'the upstream speaks the dialect payhip, but upstream.dialect is specification  →  set upstream.dialect: payhip',
    ]);
    const mended = await examine(directory.path, { ...upstream, dialect: 'payhip' });
    expect(mended.code).toBe(0);
    expect(linesOf(mended, 'ok')).toEqual(
      expect.arrayContaining([
        'the upstream speaks the dialect payhip, as configured',
        'the secret of product RGsF is accepted',
        'the API key is accepted',
      ]),
    );
    expect(new Set(store.ledger.map(({ kind }) => kind))).toEqual(new Set(['verify', 'list_coupons']));
  },
);

test('doctor distinguishes a store of the specification from another dialect', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const found = await examine(directory.path, { base_url: upstream.url, dialect: 'payhip' });
  expect(linesOf(found, 'fail')).toEqual([
    'the upstream speaks the dialect specification, but upstream.dialect is payhip  →  set upstream.dialect: specification',
  ]);
});

test('doctor does not take a server that always answers 404 for the API', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  upstream.fault = every(refusal(404, 'no Route matched'));
  const found = await examine(directory.path, { base_url: upstream.url, dialect: 'payhip' });
  expect(linesOf(found, 'warn')).toEqual(
    expect.arrayContaining([
      `the server at ${upstream.url} says 404 to a request without a credential: is it the API?  →  check upstream.base_url`,
      'the secret of product RGsF: the upstream answers the same without it, so it is not clear whether it is accepted  →  check upstream.base_url, and verify a license key that exists',
    ]),
  );
  expect(found.out).not.toMatch(/speaks the dialect|the API answers|is accepted$/m);
});

test('doctor does not call a secret accepted if the store answers the same without a secret', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const body = '{"error":true,"data":[]}';
  upstream.fault = every({ kind: 'replaced', counted: false, status: 400, headers: {}, body });
  const found = await examine(directory.path, { base_url: upstream.url, dialect: 'payhip' });
  expect(linesOf(found, 'ok')).toContain('the upstream speaks the dialect payhip, as configured');
  expect(linesOf(found, 'warn').join('\n')).toMatch(/the secret of product RGsF: .* the same without it/);
  expect(found.out).not.toMatch(/is accepted$/m);
});

test('doctor does not detect the dialect from an API key that is accepted both ways', async () => {
  await using directory = temporaryDirectory();
  await using store = await startRealStore({ apiKey, products: [] });
  const headers = { api_key: 'payhip-api-key' };
  const upstream = { base_url: store.url, api_key: apiKey, dialect: 'payhip', headers };
  const found = await examine(directory.path, upstream);
  expect(found.out).not.toContain('speaks the dialect');
  expect(linesOf(found, 'ok')).toContain('the API key is accepted');
  expect(linesOf(found, 'fail')).toEqual([expect.stringMatching(/^the secret of product RGsF: HTTP 401/)]);
});

test('doctor uses connect_to, and does not resolve the host name of the upstream', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const connectTo = upstream.url.replace('http://', '');
  const found = await examine(directory.path, { base_url: 'http://store.invalid', connect_to: connectTo });
  expect(linesOf(found, 'ok')).toEqual(
    expect.arrayContaining([
      `connections to the upstream go to ${connectTo} (upstream.connect_to)`,
      'the API answers at http://store.invalid',
      'the secret of product RGsF is accepted',
    ]),
  );
});

test.each([
  ['a firewall’s challenge', every(challengePage()), /is not the API: HTTP 403/],
  ['a firewall’s page', every(firewallPage()), /is not the API: HTTP 403: the response is HTML/],
  ['another web server', every(corruptBody()), /is not the API: HTTP 200: the response is HTML/],
])('doctor distinguishes %s from the API', async (_, fault, message) => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  upstream.fault = fault;
  const found = await examine(directory.path, { base_url: upstream.url });
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail')).toEqual([expect.stringMatching(message)]);
});

test.each([
  [
    { base_url: 'http://127.0.0.1:9' },
    /cannot be reached: connection refused {2}→ {2}check upstream\.base_url/,
  ],
  [{ base_url: 'http://nowhere.invalid' }, /nowhere\.invalid, the name of the upstream, does not resolve/],
  [{ base_url: 'http://localhost', proxy: 'http://127.0.0.1:9' }, /cannot be reached: .*refused/],
])('doctor reports an upstream that cannot be reached: %j', async (upstream, message) => {
  await using directory = temporaryDirectory();
  const found = await examine(directory.path, upstream);
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail').join('\n')).toMatch(message);
});

test('doctor reports a proxy variable that is no URL', async () => {
  await using directory = temporaryDirectory();
  vi.stubEnv('HTTP_PROXY', 'proxy.example:3128');
  onTestFinished(() => void vi.unstubAllEnvs());
  const found = await examine(directory.path, { base_url: 'http://192.0.2.1' });
  expect(found).toMatchObject({ code: 1, err: '' });
  expect(linesOf(found, 'fail')).toEqual([
    expect.stringContaining('cannot be reached: HTTP_PROXY is not the URL of a proxy'),
  ]);
});

test('doctor warns of a remote upstream without TLS', async () => {
  await using directory = temporaryDirectory();
  const found = await examine(directory.path, { base_url: 'http://nowhere.invalid' });
  expect(linesOf(found, 'warn')).toContain(
    'http://nowhere.invalid is plain http to another machine  →  use https: anyone on the network path can read the secrets',
  );
  const encrypted = await examine(directory.path, { base_url: 'https://nowhere.invalid' });
  expect(encrypted.out).not.toContain('plain http');
});

test("doctor compares the clock with the upstream's", async () => {
  await using directory = temporaryDirectory();
  const server = createServer((_, response) => {
    const date = new Date(Date.now() - 3_600_000).toUTCString();
    response.writeHead(401, { 'content-type': 'application/json', date }).end('{"error":"who?"}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const found = await examine(directory.path, { base_url: `http://127.0.0.1:${port}` });
  server.close();
  expect(linesOf(found, 'fail').join('\n')).toMatch(
    /this machine and the store differ by 60 minutes; one of the two is wrong {2}→/,
  );
});

test('doctor reports files that other users can read, with the command that fixes it', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const state = join(directory.path, 'state');
  mkdirSync(state, { mode: 0o755 });
  writeFileSync(join(state, 'admin.token'), 'lk_tok_x');
  chmodSync(join(state, 'admin.token'), 0o644);
  const found = await examine(directory.path, { base_url: upstream.url });
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail')).toEqual([
    `state directory ${state} is accessible to other users  →  chmod 700 ${state}`,
    `${state}/admin.token can be read by other users  →  chmod 0600 ${state}/admin.token`,
  ]);
});

test('doctor reports a state directory that a start would refuse', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const state = join(directory.path, 'state');
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(directory.path, 'elsewhere'), 'lk_tok_x', { mode: 0o600 });
  symlinkSync(join(directory.path, 'elsewhere'), join(state, 'admin.token'));
  const found = await examine(directory.path, { base_url: upstream.url });
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail').join('\n')).toContain('admin.token in it is a link');
});

/** Latchkey as a user who may not look into what this one has closed, also where this one is root. */
const asStranger: Program =
  process.getuid?.() === 0
    ? ['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups', ...ownProgram]
    : ownProgram;

test.each([
  ['it', 'state'],
  ['the directory it is in', '.'],
])('doctor reports an unreadable state directory if %s is closed', async (_, name) => {
  await using directory = temporaryDirectory();
  const home = join(directory.path, 'home');
  const state = join(home, 'state');
  const file = join(directory.path, 'latchkey.yaml');
  mkdirSync(home);
  openStore({ directory: state })[Symbol.dispose]();
  const upstream = { base_url: 'http://127.0.0.1:9' };
  const products = [{ key: 'RGsF', secret }];
  writeFileSync(file, JSON.stringify({ state_dir: state, upstream, products }), { mode: 0o644 });
  chmodSync(directory.path, 0o755);
  chmodSync(join(home, name), 0);
  using reopened = new DisposableStack();
  reopened.defer(() => chmodSync(join(home, name), 0o700));
  const examineAsStranger = (...words: string[]): Promise<Outcome> =>
    runProcess(['doctor', '--config', file, ...words], {}, asStranger, '/');
  const found = await examineAsStranger();
  expect(found).toMatchObject({ code: 1, err: '' });
  const advice = 'run this as the user that runs the daemon, or as root';
  expect(linesOf(found, 'fail')).toEqual(
    expect.arrayContaining([
      `state directory ${state}: permission denied  →  ${advice}`,
      `the store ${state}/latchkey.db cannot be examined: permission denied  →  ${advice}`,
    ]),
  );
  const { code, out } = await examineAsStranger('--json');
  const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: unknown[] };
  expect({ code, ok }).toEqual({ code: 1, ok: false });
  expect(findings).toContainEqual({
    level: 'fail',
    what: `state directory ${state}: permission denied`,
    advice,
  });
});

test('doctor reports files that are no certificates', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'ca.pem');
  writeFileSync(file, 'not a certificate');
  const found = await examine(directory.path, { base_url: 'https://127.0.0.1:9', ca_file: file });
  expect(linesOf(found, 'fail').join('\n')).toContain(`${file} does not contain a certificate`);
});

test('doctor reports an upstream whose certificate has other names', async () => {
  await using directory = temporaryDirectory();
  await using other = await listenSecurely();
  const file = join(directory.path, 'ca.pem');
  writeFileSync(file, certificate);
  const found = await examine(directory.path, {
    base_url: 'https://store.invalid',
    connect_to: `127.0.0.1:${other.port}`,
    ca_file: file,
  });
  expect(linesOf(found, 'fail')).toEqual([
    expect.stringMatching(
      /^https:\/\/store\.invalid cannot be reached: .*altnames.* {2}→ {2}another server answers there: check upstream\.base_url and upstream\.connect_to$/,
    ),
  ]);
});

test('doctor distinguishes an untrusted certificate from a server without TLS', async () => {
  await using directory = temporaryDirectory();
  await using stranger = await listenSecurely();
  const base = `https://localhost:${stranger.port}`;
  const distrusted = await examine(directory.path, { base_url: base });
  expect(linesOf(distrusted, 'fail')).toEqual([
    `${base} cannot be reached: a self-signed certificate that is not trusted here  →  set upstream.ca_file to the certificate of the authority that signed the upstream’s`,
  ]);
  await using plain = await startUpstream();
  const url = plain.url.replace('http:', 'https:');
  const unencrypted = await examine(directory.path, { base_url: url });
  expect(linesOf(unencrypted, 'fail')).toEqual([
    `${url} cannot be reached: the server does not speak TLS  →  check upstream.base_url, upstream.proxy, and the firewall of this machine`,
  ]);
});

test('doctor reports each error of the configuration', async () => {
  await using directory = temporaryDirectory();
  const found = await examine(directory.path, { base_url: 'nonsense', probe: 'never' });
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail')).toHaveLength(2);
});

test('doctor reports a store of a newer version', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const state = join(directory.path, 'state');
  openStore({ directory: state })[Symbol.dispose]();
  using database = new DatabaseSync(join(state, 'latchkey.db'));
  database.exec('PRAGMA user_version = 1000');
  const found = await examine(directory.path, { base_url: upstream.url });
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail')).toEqual([
    expect.stringMatching(
      /^the store \S+latchkey\.db cannot be used: a newer Latchkey wrote it \(schema 1000; .* {2}→ {2}start it with the newer Latchkey$/,
    ),
  ]);
});

test('doctor reports a damaged store while no daemon runs', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const state = join(directory.path, 'state');
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(state, 'latchkey.db'), 'SQLite is something else', { mode: 0o600 });
  const found = await examine(directory.path, { base_url: upstream.url });
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail').join('\n')).toMatch(
    /it is damaged, or not an SQLite database.* → {2}restore a backup: latchkey --config \S+ restore FILE/,
  );
});

test('doctor does not call a store damaged if it cannot open it', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  const state = join(directory.path, 'state');
  {
    using store = openStore({ directory: state });
    using _ = openWriting(store.databasePath);
  }
  // SQLite cannot open its log.
  mkdirSync(join(state, 'latchkey.db-wal'), { mode: 0o700 });
  const found = await examine(directory.path, { base_url: upstream.url });
  expect(found.code).toBe(1);
  expect(linesOf(found, 'fail').join('\n')).toMatch(
    /the store \S+latchkey\.db cannot be examined: unable to open database file {2}→ {2}check that its disk works and has free space/,
  );
  expect(found.out).not.toContain('restore');
});

test('doctor reports the unsent changes of a stopped agent', async () => {
  await using directory = temporaryDirectory();
  await using upstream = await startUpstream();
  {
    using store = openStore({ directory: join(directory.path, 'state') });
    using connection = openWriting(store.databasePath);
    connection.transaction.operations.add(buildOperation());
  }
  const found = await examine(directory.path, { base_url: upstream.url });
  expect(linesOf(found, 'warn')).toContain(
    `1 change in it did not reach the upstream yet  →  start it: latchkey --config ${directory.path}/agent.yaml serve`,
  );
});

test('doctor reads the status of a running daemon', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startDaemonProcess(directory.path, { listen: { tcp: '127.0.0.1:0' } });
  const file = join(directory.path, 'config.yaml');
  const found = await latchkey('doctor', '--config', file, '--json');
  expect(found.code).toBe(0);
  const { ok, findings } = JSON.parse(found.out) as {
    ok: boolean;
    findings: { level: string; what: string }[];
  };
  expect(ok).toBe(true);
  expect(findings.map(({ what }) => what)).toContain('the daemon is ready');
  daemon.signal('SIGTERM');
  await daemon.ended;
  const after = await latchkey('doctor', '--config', file);
  expect(linesOf(after, 'ok')).toContain(`the store ${directory.path}/state/latchkey.db is sound`);
});
