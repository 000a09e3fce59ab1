import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { ListenError } from '../../http/listen.ts';

/**
 * The signals that end the process. On POSIX systems, SIGHUP reloads. On Windows, SIGHUP says that the window was closed,
 * SIGBREAK is Ctrl-Break, and the last two do not exist.
 */
export function endingSignalsOf(platform: NodeJS.Platform): readonly NodeJS.Signals[] {
  return platform === 'win32'
    ? ['SIGINT', 'SIGTERM', 'SIGBREAK', 'SIGHUP']
    : ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2'];
}

export const endingSignals: readonly NodeJS.Signals[] = endingSignalsOf(process.platform);

/**
 * The signals that close-with-grace must not handle: those above, and those of fatal faults. They get no handler:
 * after it, the same instruction would fault again.
 */
export const skippedSignals = [
  ...(['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2'] as const),
  ...(['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGTRAP'] as const),
];

/** A signal within this time after the last one counts as the same, in ms. */
const repeatedMs = 500;

/**
 * Calls `end` at the first signal that ends the process, and `onRepeat` at each later signal. If `onRepeat` returns false, the
 * process exits at once with 1. A supervisor may forward the same signal (Ctrl-C): repeats within 500 ms count as one.
 * Returns a function that removes the handlers.
 */
export function onEndingSignal(
  end: (signal: NodeJS.Signals) => void,
  onRepeat: (signal: NodeJS.Signals) => boolean = () => false,
): () => void {
  let lastAt: number | null = null;
  const receive = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (lastAt !== null && now - lastAt <= repeatedMs) return;
    const isFirst = lastAt === null;
    lastAt = now;
    if (isFirst) end(signal);
    else if (!onRepeat(signal)) process.exit(1);
  };
  for (const signal of endingSignals) process.on(signal, receive);
  return () => {
    for (const signal of endingSignals) process.off(signal, receive);
  };
}

/** How much a heap grows until the next collection, in percent. By default, V8 lets it grow fourfold. */
const growth = 30;

/** The young generation of a thread, in MiB. The default of Node is 16 or more. */
const young = 4;

/**
 * Limits the young generation of threads that start later. The limit of the first thread is an option of Node
 * (`NODE_OPTIONS` of the service, `packaging/executable.ts`).
 */
export function limitYoungGeneration(): void {
  setFlagsFromString(`--max-semi-space-size=${young}`);
}

/**
 * Collects garbage of requests earlier than V8 would, which saves memory and time. Affects the whole process, so programs
 * that embed a daemon do not call this. Called after the daemon is ready: V8 rejects cached code that was compiled without
 * these flags (`v8.cachedDataVersionTag`), for instance all code of Node.
 */
export function collectGarbageSooner(): void {
  setFlagsFromString(`--heap-growing-percent=${growth}`);
  // Connections that open together survive the young generation together. V8 would then allocate the objects of the same
  // code in the old generation (pretenuring), including parts of each request, which keep the rest of the request alive
  // until a full collection.
  setFlagsFromString('--no-allocation-site-pretenuring');
}

const leakyOptions =
  /^(?:-r|--require|--import|--loader|--experimental-loader|--heap-prof|--cpu-prof|--prof|--heapsnapshot-near-heap-limit|--tls-keylog|--trace-tls|--trace-event-categories|--report-on-fatalerror|--report-uncaught-exception)$/;

/** Environment settings that make Node reveal secrets, and that this process cannot undo (see cli/main.ts). */
export function leakyNodeSettings(): readonly string[] {
  const options = (process.env['NODE_OPTIONS'] ?? '').split(/\s+/).map((option) => option.replace(/=.*/, ''));
  const variables = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE', 'NODE_V8_COVERAGE'];
  return [
    ...options.filter((option) => leakyOptions.test(option)).map((option) => `NODE_OPTIONS ${option}`),
    ...variables.filter((name) => (process.env[name] ?? '') !== ''),
  ];
}

/** The number of a group, from its number or its name in /etc/group: Node cannot query directory services. */
export function groupNumber(group: string): number {
  if (/^\d{1,10}$/.test(group)) return Number(group);
  for (const line of readGroups().split('\n')) {
    const [name, , number = ''] = line.split(':');
    if (name === group && /^\d+$/.test(number)) return Number(number);
  }
  throw new ListenError('refused', `there is no group ${group} in /etc/group: give its number instead`);
}

function readGroups(): string {
  try {
    return readFileSync('/etc/group', 'utf8');
  } catch {
    return '';
  }
}
