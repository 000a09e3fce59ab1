import { once } from 'node:events';
import { readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Outcome, runProcess } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/* Commands never send a token to a program that is not the daemon. Node for Windows runs this file too, with pipes. */

type Addresses = { tcp: string | null; socket: string | null; instance: string; directory: string };
type Kind = 'tcp' | 'socket';
const kinds: readonly Kind[] = ['tcp', 'socket'];

/** A program that another user has started. It keeps every byte that it receives. */
interface Attacker extends AsyncDisposable {
  readonly server: Server;
  readonly received: () => string;
}

async function attack(place: ListenOptions, serve: (socket: Socket) => void): Promise<Attacker> {
  const chunks: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
    serve(socket);
  });
  await once(server.listen(place), 'listening');
  return {
    server,
    received: () => Buffer.concat(chunks).toString('latin1'),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers each request as the daemon would, except for the proof. */
function impersonate(instance: string, proof: object): (socket: Socket) => void {
  const body = JSON.stringify({ status: 'ok', reasons: [], data: { tokens: [] }, ...proof });
  const head = [
    'HTTP/1.1 200 OK',
    `Latchkey-Instance: ${instance}`,
    'Content-Type: application/json',
    'Keep-Alive: timeout=72',
    `Content-Length: ${body.length}`,
  ];
  return (socket) => socket.on('data', () => socket.write(`${head.join('\r\n')}\r\n\r\n${body}`));
}

function forwardTo(target: { path: string } | { host: string; port: number }): (socket: Socket) => void {
  return (socket) => {
    const onward = connect(target);
    onward.on('error', () => undefined);
    socket.pipe(onward).pipe(socket);
  };
}

/** A free place for a socket, or for a pipe on Windows. */
function newSocket(directory: string, name: string): string {
  return process.platform === 'win32'
    ? String.raw`\\.\pipe\latchkey-test-${process.pid}-${name}`
    : join(directory, name);
}

interface Home {
  readonly state: string;
  readonly token: string;
  readonly daemon: DaemonProcess;
  readonly socket: string;
  readonly addresses: () => Addresses;
  readonly announce: (addresses: Addresses) => void;
  readonly run: (environment?: Readonly<Record<string, string>>) => Promise<Outcome>;
}

let homes = 0;

async function startHome(directory: string): Promise<Home> {
  homes += 1;
  const socket = newSocket(directory, `daemon-${homes}`);
  const daemon = await startDaemonProcess(directory, { listen: { tcp: '127.0.0.1:0', socket } });
  const state = join(directory, 'state');
  const file = join(state, 'listen.json');
  return {
    state,
    daemon,
    socket,
    token: readFileSync(join(state, 'admin.token'), 'utf8').trim(),
    addresses: () => JSON.parse(readFileSync(file, 'utf8')) as Addresses,
    announce: (addresses) => writeFileSync(file, JSON.stringify(addresses), { mode: 0o600 }),
    run: (environment) => runProcess(['token', 'list', '--state-dir', state], environment),
  };
}

/** The attacker received the request for a proof, and no other. */
function expectNoToken(attacker: Attacker, { token }: Home): void {
  expect(attacker.received()).toMatch(/^GET \/livez\?nonce=[\w-]{32} /);
  expect(attacker.received().match(/ HTTP\/1\.1\r/g)).toHaveLength(1);
  expect(attacker.received()).not.toMatch(/authorization/i);
  expect(attacker.received()).not.toContain(token);
}

function portOf(tcp: string | null): number {
  return Number(new URL(tcp ?? '').port);
}

function only(kind: Kind, { tcp, socket, ...rest }: Addresses): Addresses {
  return { ...rest, tcp: kind === 'tcp' ? tcp : null, socket: kind === 'socket' ? socket : null };
}

const wrong = { proof: { address: 'tcp 127.0.0.1:1', hmac: 'A'.repeat(43) } };

test.for(kinds)('a program at the address (%s) of a killed daemon gets no token', async (kind) => {
  await using directory = temporaryDirectory();
  const home = await startHome(directory.path);
  const left = only(kind, home.addresses());
  await home.daemon.kill();
  home.announce(left);
  if (kind === 'socket' && process.platform !== 'win32') unlinkSync(home.socket);
  const place = kind === 'socket' ? { path: home.socket } : { host: '127.0.0.1', port: portOf(left.tcp) };
  for (const [proof, environment, reason] of [
    [{}, { LATCHKEY_TOKEN: home.token }, 'cannot prove that it knows admin.token'],
    [wrong, {}, 'does not know the token in admin.token'],
  ] as const) {
    await using attacker = await attack(place, impersonate(left.instance, proof));
    const { code, out, err } = await home.run(environment);
    expect([code, out]).toEqual([69, '']);
    expect(err).toContain(reason);
    expectNoToken(attacker, home);
  }
});

test('status --check does not believe a program at the address of a killed daemon', async () => {
  await using directory = temporaryDirectory();
  const home = await startHome(directory.path);
  const left = only('tcp', home.addresses());
  await home.daemon.kill();
  home.announce(left);
  await using _ = await attack(
    { host: '127.0.0.1', port: portOf(left.tcp) },
    impersonate(left.instance, wrong),
  );
  const { code, out } = await runProcess(['status', '--check', '--state-dir', home.state]);
  expect([code, out]).toEqual([69, '']);
});

test.for(kinds)('a program (%s) that forwards to the running daemon gets no token', async (kind) => {
  await using directory = temporaryDirectory();
  const home = await startHome(directory.path);
  await using _ = home.daemon;
  const real = home.addresses();
  const path = newSocket(directory.path, `relay-${kind}`);
  const target = kind === 'socket' ? { path: home.socket } : { host: '127.0.0.1', port: portOf(real.tcp) };
  const place = kind === 'socket' ? { path } : { host: '127.0.0.1', port: 0 };
  await using attacker = await attack(place, forwardTo(target));
  const address = attacker.server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  home.announce(only(kind, { ...real, tcp: `http://127.0.0.1:${port}`, socket: path }));
  const { code, err } = await home.run();
  expect(code).toBe(69);
  expect(err).toContain('a program there forwards to the daemon at');
  expectNoToken(attacker, home);
  // The same daemon at its own address, or by a name.
  home.announce(only(kind, { ...real, tcp: `http://localhost:${portOf(real.tcp)}` }));
  expect(await home.run()).toMatchObject({ code: 0, err: '' });
});

test('a program that accepted the connection before the daemon started there gets no token', async () => {
  await using directory = temporaryDirectory();
  const home = await startHome(directory.path);
  const left = only('tcp', home.addresses());
  const port = portOf(left.tcp);
  await home.daemon.kill();
  home.announce(left);
  const accepted = Promise.withResolvers<Socket>();
  await using attacker = await attack({ host: '127.0.0.1', port }, accepted.resolve);
  const running = home.run();
  const victim = await accepted.promise;
  const [probe] = (await once(victim, 'data')) as [Buffer];
  // The address is free again, and the daemon listens there.
  attacker.server.close();
  await using _ = await startDaemonProcess(directory.path, { listen: { tcp: `127.0.0.1:${port}` } });
  const onward = connect({ host: '127.0.0.1', port });
  onward.on('error', () => undefined).write(probe);
  victim.pipe(onward).pipe(victim);
  const { code, err } = await running;
  expect(code).toBe(69);
  expect(err).toContain(`forwards to the daemon at tcp 127.0.0.1:${port} from`);
  expectNoToken(attacker, home);
});
