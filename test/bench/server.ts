import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { start, type Argv, type Started } from './process.ts';
import { root } from './program.ts';
import type { BareOptions } from './reference/bare.ts';
import { productKey, secret } from './sample.ts';

/** A server to put under load. */
export type Server = Started & {
  readonly tcp: { readonly port: number };
  readonly socket: { readonly socket: string };
};

/** A Latchkey server, and its admin access. */
export type Latchkey = Server & {
  readonly configuration: string;
  /** The headers with the admin token. */
  readonly admin: { readonly authorization: string };
};

const bare = join(import.meta.dirname, 'reference/bare.ts');

/** Starts the reference server. By default it keeps uses in memory. */
export async function startBare(bench: Bench, options: Partial<BareOptions> = {}): Promise<Server> {
  const socket = bench.socketPath();
  const all: BareOptions = { licenses: 1000, database: null, writer: null, hangs: false, ...options, socket };
  const started = await start([process.execPath, bare, JSON.stringify(all)], () => true);
  const { port } = JSON.parse(started.line) as { port: number };
  return bench.keep({ ...started, tcp: { port }, socket: { socket } });
}

/** The options of a Latchkey server. */
export type LatchkeyOptions = {
  /** A state directory of `stores.ts`. */
  readonly state: string;
  /** The upstream of an agent. An authority has none. */
  readonly upstream?: Server['tcp'];
  /** Further settings, as in the configuration file. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** A program that runs it, such as strace. */
  readonly under?: readonly string[];
  /** Another form of the program. */
  readonly program?: Argv;
  /** Whether it has the environment of the systemd unit, which saves memory. */
  readonly asService?: boolean;
};

/** Starts Latchkey as users do, and waits until it is ready. */
export async function startLatchkey(bench: Bench, options: LatchkeyOptions): Promise<Latchkey> {
  const socket = bench.socketPath();
  const [file, ...first] = options.program ?? bench.program;
  const configuration = writeConfiguration(bench, options, socket);
  const serve = [file, ...first, 'serve', '--config', configuration];
  const started = await start([...(options.under ?? []), ...serve] as unknown as Argv, isReady, {
    ...bench.environment,
    ...(options.asService === true && serviceEnvironment()),
  });
  const ready = JSON.parse(started.line) as { tcp: string };
  const token = readFileSync(join(options.state, 'admin.token'), 'utf8').trim();
  return bench.keep({
    ...started,
    tcp: { port: Number(new URL(ready.tcp).port) },
    socket: { socket },
    configuration,
    admin: { authorization: `Bearer ${token}` },
  });
}

/** The environment of the systemd unit (`examples/latchkey.service`). */
export function serviceEnvironment(): NodeJS.ProcessEnv {
  const unit = readFileSync(join(root, 'examples/latchkey.service'), 'utf8');
  const [, assignments = ''] = /^Environment=(.*)$/m.exec(unit) ?? [];
  return Object.fromEntries(assignments.split(' ').map((each) => each.split(/=(.*)/).slice(0, 2)));
}

function writeConfiguration(
  bench: Bench,
  { state, upstream, settings }: LatchkeyOptions,
  socket: string,
): string {
  const agent = upstream && {
    upstream: { base_url: `http://127.0.0.1:${upstream.port}` },
    products: [{ key: productKey, secret }],
  };
  const listen = { tcp: '127.0.0.1:0', socket };
  const file = join(mkdtempSync(join(bench.directory, 'config-')), 'config.yaml');
  writeFileSync(file, JSON.stringify({ state_dir: state, listen, ...agent, ...settings }), { mode: 0o600 });
  return file;
}

function isReady(line: string): boolean {
  return line.startsWith('{') && (JSON.parse(line) as { msg?: string }).msg === 'ready';
}
