import { setFlagsFromString } from 'node:v8';

/** How much a heap grows after a collection until the next, in percent: by itself V8 lets it grow fourfold. */
const growth = 30;

/** Of young objects of a thread, in MiB; Node's own limit is 16 or more. */
const young = 4;

/**
 * Collects what requests leave behind sooner than V8 would, for less memory. For the whole process, and so not for
 * programs that embed a daemon. The limit of young objects holds for threads that begin after it; for the first it
 * must be given to Node itself (the service's `NODE_OPTIONS`, `packaging/executable.ts`).
 */
export function keepHeapsSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${growth}`);
  setFlagsFromString(`--max-semi-space-size=${young}`);
}
