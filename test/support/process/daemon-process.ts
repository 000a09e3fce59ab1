import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll } from 'vitest';
import { compiledOnce, ownProgram, type Program } from './command-line.ts';
import { patienceMs } from '../patience.ts';

export type LogLine = Record<string, unknown> & { msg?: string };

/** A daemon as an operator runs it: a separate process, started by the real command line. */
export interface DaemonProcess extends AsyncDisposable {
  readonly pid: number;
  readonly tcp: string;
  readonly socket: string | null;
  /** The log lines so far. */
  readonly lines: readonly LogLine[];
  /** The standard error output so far. */
  readonly complaints: string;
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code when the process has ended, or null if a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Kills the process, as a power cut does. */
  kill(): Promise<void>;
  /** Resolves with the first log line with this message, past or future. */
  said(message: string): Promise<LogLine>;
}

/** Starts a daemon in a state directory with a configuration, and waits until it is ready. */
export async function startDaemonProcess(
  directory: string,
  configuration: object,
  environment: Record<string, string> = {},
  program: Program = ownProgram,
): Promise<DaemonProcess> {
  return await untilReady(spawnDaemon(directory, configuration, environment, program));
}

/** Starts a daemon with the configuration in its working directory, and waits until it is ready. */
export async function serveIn(directory: string): Promise<DaemonProcess> {
  const env = { HOME: directory, ...compiledOnce(ownProgram) };
  return await untilReady(spawnServe([...ownProgram, 'serve'], { cwd: directory, env }));
}

/** Starts a daemon by a complete command line, and waits until it is ready. */
export async function serveBy(command: Program): Promise<DaemonProcess> {
  return await untilReady(spawnServe(command, { env: {} }));
}

async function untilReady(process_: DaemonProcess): Promise<DaemonProcess> {
  const ready = await Promise.race([
    process_.said('ready'),
    process_.ended.then((code) => {
      throw new Error(`the daemon ended with ${code}: ${process_.complaints}`);
    }),
  ]).catch(async (error: unknown) => {
    await process_.kill();
    throw error;
  });
  return Object.assign(process_, {
    tcp: String(ready['tcp']),
    socket: (ready['socket'] ?? null) as string | null,
  });
}

/** Starts a daemon that may refuse to start. */
export function spawnDaemon(
  directory: string,
  configuration: object,
  environment: Record<string, string> = {},
  program: Program = ownProgram,
): DaemonProcess {
  const config = join(directory, 'config.yaml');
  const text = JSON.stringify({ state_dir: join(directory, 'state'), ...configuration });
  writeFileSync(config, text, { mode: 0o600 });
  const env = { HOME: directory, ...compiledOnce(program), ...environment };
  return spawnServe([...program, 'serve', '--config', config], { env });
}

function spawnServe(
  [file = '', ...argv]: readonly string[],
  { cwd, env }: { cwd?: string; env: Record<string, string> },
): DaemonProcess {
  const options = { cwd, env: { PATH: process.env['PATH'], ...env } };
  return watch(spawn(file, argv, { ...options, stdio: ['ignore', 'pipe', 'pipe'] }));
}

/**
 * The running daemons. They are killed after the tests, because an aborted test must not leave a daemon that
 * keeps calling old ports.
 */
const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

function watch(child: ChildProcess): DaemonProcess {
  const lines: LogLine[] = [];
  let complaints = '';
  const listeners = new Set<() => void>();
  running.add(child);
  const ended = once(child, 'close').then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(parseLine(line));
      for (const listen of listeners) listen();
    });
  }
  child.stderr?.on('data', (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  return {
    pid: child.pid ?? -1,
    tcp: '',
    socket: null,
    lines,
    get complaints() {
      return complaints;
    },
    ended,
    kill,
    signal: (name) => {
      child.kill(name);
    },
    said: (message) => waitFor(() => lines.find(({ msg }) => msg === message), listeners, message),
    [Symbol.asyncDispose]: kill,
  };
}

function parseLine(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { msg: line };
  }
}

async function waitFor<Value>(
  find: () => Value | undefined,
  listeners: Set<() => void>,
  what: string,
): Promise<Value> {
  const { promise, resolve, reject } = Promise.withResolvers<Value>();
  const look = (): void => {
    const found = find();
    if (found !== undefined) resolve(found);
  };
  const timer = setTimeout(() => {
    reject(new Error(`the daemon did not say "${what}" within ${patienceMs} ms`));
  }, patienceMs);
  listeners.add(look);
  look();
  return await promise.finally(() => {
    clearTimeout(timer);
    listeners.delete(look);
  });
}
