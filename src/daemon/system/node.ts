import { setFlagsFromString } from 'node:v8';

/** How much a heap grows after a collection until the next, in percent: by itself V8 lets it grow fourfold. */
const growth = 30;

/** Of young objects of a thread, in MiB; Node's own limit is 16 or more. */
const young = 4;

/**
 * Leaves threads that begin after it room for few young objects. For the first thread the limit must be given to
 * Node itself (the service's `NODE_OPTIONS`, `packaging/executable.ts`).
 */
export function limitYoungObjects(): void {
  setFlagsFromString(`--max-semi-space-size=${young}`);
}

/**
 * Collects what requests leave behind sooner than V8 would, for less memory and time. For the whole process, and so not
 * for programs that embed a daemon. Not before it is ready: code that was compiled without these flags, as all of Node's
 * own was, would be compiled anew from then on (`v8.cachedDataVersionTag`).
 */
export function collectSooner(): void {
  setFlagsFromString(`--heap-growing-percent=${growth}`);
  // Connections that open together survive the young generation together. From then on V8 would allocate what the same
  // code makes in the old one (pretenuring): parts of each request too, which keep the rest of it until the whole heap
  // is collected.
  setFlagsFromString('--no-allocation-site-pretenuring');
}

const risky =
  /^(?:-r|--require|--import|--loader|--experimental-loader|--heap-prof|--cpu-prof|--prof|--heapsnapshot-near-heap-limit|--tls-keylog|--trace-tls|--trace-event-categories|--report-on-fatalerror|--report-uncaught-exception)$/;

/** What in the environment lets Node show or write what the process knows, and cannot be closed (see cli/main.ts). */
export function openBackDoors(): readonly string[] {
  const options = (process.env['NODE_OPTIONS'] ?? '').split(/\s+/).map((option) => option.replace(/=.*/, ''));
  const variables = ['NODE_DEBUG', 'NODE_DEBUG_NATIVE', 'NODE_V8_COVERAGE'];
  return [
    ...options.filter((option) => risky.test(option)).map((option) => `NODE_OPTIONS ${option}`),
    ...variables.filter((name) => (process.env[name] ?? '') !== ''),
  ];
}
