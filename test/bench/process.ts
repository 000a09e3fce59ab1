import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** A process of the benchmark. */
export interface Started extends AsyncDisposable {
  readonly pid: number;
  /** Its first line that `isReady` accepted. */
  readonly line: string;
  /** The time from the start of the process to this line, in ms. */
  readonly readyMs: number;
  /** Ends the process and waits for its exit. */
  readonly stop: () => Promise<void>;
}

export type Argv = readonly [file: string, ...argv: string[]];

/** The running processes, which end with the benchmark. */
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a process and waits for the line that says that it is ready. */
export async function start(
  [file, ...argv]: Argv,
  isReady: (line: string) => boolean,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Started> {
  const before = performance.now();
  const child = spawn(file, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let complaints = '';
  child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
  const ended = once(child, 'close').then(() => running.delete(child));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  void ended.then(() => reject(new Error(`${[file, ...argv].join(' ')} ended: ${complaints}`)));
  const lines = createInterface({ input: child.stdout }).on('line', (line) => {
    if (!isReady(line)) return;
    resolve(line);
    // A full pipe would block the process, and parsing each line would take processor time from the measurement.
    lines.close();
    child.stdout.resume();
  });
  const line = await promise;
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  return {
    pid: child.pid ?? -1,
    line,
    readyMs: performance.now() - before,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Runs a process to its end and gives its output. */
export async function output([file, ...argv]: Argv, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const child = spawn(file, argv, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let text = '';
  let complaints = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  running.delete(child);
  if (code !== 0) throw new Error(`${[file, ...argv].join(' ')} ended with ${code}: ${complaints}`);
  return text;
}

/** The time of the threads of a process in ms: running on a processor, and waiting for one. */
export type ProcessorTime = { readonly used: number; readonly waited: number };

/** The sum over all threads. Null: this system has no /proc. */
export function processorTime(pid: number): ProcessorTime | null {
  try {
    const times = readdirSync(`/proc/${pid}/task`).map((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ').map(Number),
    );
    const sum = (column: number): number =>
      times.reduce((total, each) => total + (each[column] ?? 0), 0) / 1e6;
    return { used: sum(0), waited: sum(1) };
  } catch {
    return null;
  }
}

/** The resident memory of a process in MiB, and the part that is mapped files. Null: this system has no /proc. */
export function residentMemory(pid: number): { readonly mib: number; readonly ofFiles: number } | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const mib = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
    return { mib: mib('VmRSS'), ofFiles: mib('RssFile') };
  } catch {
    return null;
  }
}
