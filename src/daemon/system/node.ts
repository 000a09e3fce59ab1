import { setFlagsFromString } from 'node:v8';

/** How much a heap grows until the next collection, in percent. By default, V8 lets it grow fourfold. */
const growth = 30;

/** The young generation of a thread, in MiB. The default of Node is 16 or more. */
const young = 4;

/**
 * Limits the young generation of threads that start later. The limit of the first thread is an option of Node
 * (`NODE_OPTIONS` of the service, `packaging/executable.ts`).
 */
export function limitYoungObjects(): void {
  setFlagsFromString(`--max-semi-space-size=${young}`);
}

/**
 * Collects garbage of requests earlier than V8 would, which saves memory and time. Affects the whole process, so programs
 * that embed a daemon do not call this. Called after the daemon is ready: V8 rejects cached code that was compiled without
 * these flags (`v8.cachedDataVersionTag`), for instance all code of Node.
 */
export function collectSooner(): void {
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
