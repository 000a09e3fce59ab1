import type { Traced } from '../../domain/outbox/operation.ts';
import type { Trace } from '../../service/outbox/tables.ts';

/** Collects what happens to operations, until the committer takes it. */
export function collectTrace(): Trace {
  let collected: Traced[] = [];
  return {
    add(traced) {
      collected.push(traced);
    },
    take() {
      const taken = collected;
      collected = [];
      return taken;
    },
  };
}
