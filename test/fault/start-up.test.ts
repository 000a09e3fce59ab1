import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { secret } from '../support/harness/agent-harness.ts';
import { spawnDaemon, startDaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** An agent whose upstream is down, which alone does not prevent a start. */
const agent = {
  listen: { tcp: '127.0.0.1:0' },
  upstream: { base_url: 'http://127.0.0.1:9' },
  products: [{ key: 'product', secret }],
};

interface Ending {
  readonly code: number | null;
  /** The lines on standard error. */
  readonly lines: readonly string[];
}

const chooseAnother =
  '; use another address: --listen 127.0.0.1:8788, --socket, or listen in the configuration';

/** Runs `latchkey serve` with a configuration that it must refuse, and waits for its end. */
async function refusedStart(directory: string, configuration: object): Promise<Ending> {
  await using daemon = spawnDaemon(directory, { ...agent, ...configuration });
  const code = await daemon.ended;
  return { code, lines: daemon.complaints.trimEnd().split('\n') };
}

const configurationFaults: [string, object, string[]][] = [
  [
    'an unknown key',
    { sync: { reconcile_aftr: '60s' } },
    ['sync.reconcile_aftr: unknown key; did you mean reconcile_after?'],
  ],
  [
    'a value of the wrong type',
    { sync: { concurrency: 'many' } },
    ['sync.concurrency: must be a whole number above 0'],
  ],
  [
    'a secret file that cannot be read',
    { products: [{ key: 'product', secret_file: '/nowhere/secret' }] },
    ['products[0].secret_file: cannot read /nowhere/secret: no such file or directory'],
  ],
  [
    'an address outside of this machine',
    { listen: { tcp: '0.0.0.0:0' } },
    [
      'listen.tcp: is not a loopback address: set listen.allow_remote to true to be reached from other machines',
    ],
  ],
  [
    'each of two errors',
    { sync: { rate: 'fast', concurrency: 0 } },
    ['sync.rate: must be a number above 0', 'sync.concurrency: must be a whole number above 0'],
  ],
];

test('a start warns in one line about plain http to another machine and about secrets that every user can read', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'config.yaml');
  writeFileSync(file, '');
  chmodSync(file, 0o644);
  const upstream = { base_url: 'http://nowhere.invalid' };
  await using daemon = await startDaemonProcess(directory.path, { ...agent, upstream });
  expect(await daemon.said('the configuration is not safe')).toMatchObject({
    level: 'warn',
    part: 'daemon',
    warnings: [
      expect.stringMatching(/^upstream\.base_url: is plain http to another machine/),
      expect.stringMatching(/^file: .*config\.yaml holds a secret and can be read by every user/),
    ],
  });
  expect(daemon.lines.filter(({ warnings }) => warnings !== undefined)).toHaveLength(1);
});

test('a start on loopback with a private configuration file logs no warning', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startDaemonProcess(directory.path, agent);
  expect(daemon.lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

for (const [what, configuration, faults] of configurationFaults) {
  test.concurrent(`${what} stops the start with a line and exit code 78`, async () => {
    await using directory = temporaryDirectory();
    const ending = await refusedStart(directory.path, configuration);
    const file = join(directory.path, 'config.yaml');
    const lines = faults.map((fault) => `latchkey: configuration: ${fault} (from ${file} line 1)`);
    expect(ending).toEqual({ code: 78, lines });
  });
}

async function listenOn(place: { port: number; host: string } | string): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).end()).listen(place);
  await once(server, 'listening');
  return server;
}

test.concurrent(
  'a state directory that cannot be created stops the start with one line and exit code 1',
  async () => {
    await using directory = temporaryDirectory();
    const file = join(directory.path, 'a-file');
    writeFileSync(file, '');
    const { code, lines } = await refusedStart(directory.path, { state_dir: join(file, 'state') });
    expect({ code, lines }).toEqual({
      code: 1,
      lines: [expect.stringMatching(/^latchkey: The state directory \S+ cannot be used: ENOTDIR/)],
    });
  },
);

test.concurrent(
  'a state directory that other users can write stops the start with one line and exit code 1',
  async () => {
    await using directory = temporaryDirectory();
    const state = join(directory.path, 'state');
    mkdirSync(state);
    chmodSync(state, 0o777);
    writeFileSync(join(state, 'admin.token'), 'lk_tok_of_another');
    const ending = await refusedStart(directory.path, {});
    expect(ending).toEqual({
      code: 1,
      lines: [
        `latchkey: The state directory ${state} is refused: other users can write to it: chmod go-w ${state}, or choose a new directory inside it.`,
      ],
    });
    expect(readdirSync(state)).toEqual(['admin.token']);
  },
);

test.concurrent('a busy port stops the start with one line and exit code 1', async () => {
  await using directory = temporaryDirectory();
  await using other = await listenOn({ port: 0, host: '127.0.0.1' });
  const address = other.address();
  const tcp = `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const ending = await refusedStart(directory.path, { listen: { tcp } });
  expect(ending).toEqual({ code: 1, lines: [`latchkey: another program listens on ${tcp}${chooseAnother}`] });
});

test.concurrent(
  'a socket in use stops the start with one line and exit code 1, and is not changed',
  async () => {
    await using directory = temporaryDirectory();
    const socket = join(directory.path, 'live.sock');
    await using other = await listenOn(socket);
    const ending = await refusedStart(directory.path, { listen: { tcp: false, socket } });
    expect(ending).toEqual({
      code: 1,
      lines: [`latchkey: another program listens on ${socket}${chooseAnother}`],
    });
    expect(other.listening).toBe(true);
  },
);

test.concurrent(
  'a second process on a state directory ends with one line and exit code 1, and the first process continues',
  async () => {
    await using directory = temporaryDirectory();
    await using first = await startDaemonProcess(directory.path, agent);
    const { code, lines } = await refusedStart(directory.path, {
      listen: { tcp: '127.0.0.1:0', socket: false },
    });
    const state = join(directory.path, 'state');
    expect({ code, lines }).toEqual({
      code: 1,
      lines: [
        `latchkey: Another process is using the state directory ${state}: stop it, or choose another directory.`,
      ],
    });
    expect((await fetch(`${first.tcp}/readyz`)).status).toBe(200);
  },
);

function anotherPrograms(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('CREATE TABLE note (text)');
}

function writtenByPreview(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('PRAGMA application_id = 0x4c4b4559; PRAGMA user_version = 8; CREATE TABLE outbox (id)');
}

const databases: [string, (path: string) => void, string][] = [
  [
    'empty',
    (path) => writeFileSync(path, ''),
    'it is empty: remove it, or restore a backup: latchkey restore FILE',
  ],
  [
    'of another kind',
    (path) => writeFileSync(path, 'a'.repeat(5000)),
    'it is damaged, or not an SQLite database: restore a backup: latchkey restore FILE',
  ],
  ["another program's", anotherPrograms, 'another program wrote it.'],
  [
    'written by a preview',
    writtenByPreview,
    'it was written by a preview; this version cannot read it. Nothing was changed: move it away to start with an empty store, or go on with the preview.',
  ],
];

for (const [kind, write, reason] of databases) {
  test.concurrent(
    `a database file that is ${kind} stops the start with one line and exit code 1, and is not changed`,
    async () => {
      await using directory = temporaryDirectory();
      const path = join(directory.path, 'state', 'latchkey.db');
      mkdirSync(join(directory.path, 'state'));
      write(path);
      const before = readFileSync(path);
      const ending = await refusedStart(directory.path, {});
      expect(ending).toEqual({ code: 1, lines: [`latchkey: The database ${path} is refused: ${reason}`] });
      expect(readFileSync(path).equals(before)).toBe(true);
    },
  );
}

test.concurrent('an agent whose upstream is down at the first start is ready', async () => {
  await using directory = temporaryDirectory();
  await using daemon = await startDaemonProcess(directory.path, agent);
  expect((await fetch(`${daemon.tcp}/readyz`)).status).toBe(200);
  expect((await fetch(`${daemon.tcp}/readyz?require=fresh`)).status).toBe(503);
  const answer = await fetch(`${daemon.tcp}/api/v2/license/verify?license_key=KEY`, {
    headers: { 'product-secret-key': secret },
  });
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ code: 'upstream_unreachable' });
});

test.concurrent('a socket that a killed agent left behind is replaced', async () => {
  await using directory = temporaryDirectory();
  const killed = await startDaemonProcess(directory.path, agent);
  await killed.kill();
  await using daemon = await startDaemonProcess(directory.path, agent);
  expect(daemon.socket).toBe(killed.socket);
});
