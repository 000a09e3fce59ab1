import type { SyncControl } from '../../service/ports.ts';
import type { Writer } from '../../service/writer.ts';
import type { Reader } from '../../service/tables.ts';
import type { Sync } from '../../sync/sync.ts';
import { isPaused } from '../../service/outbox/sync-marks.ts';

/** Pauses, resumes and hurries synchronization: in the store first, then in the running loops. */
export function syncControl({ reader, writer }: { reader: Reader; writer: Writer }, sync: Sync): SyncControl {
  const { limiter, push } = sync;
  /** The store knows what holds: a request that is answered again from its idempotency key changes nothing. */
  const isPausedNow = (asked: boolean): boolean => {
    try {
      return isPaused(reader);
    } catch {
      return asked;
    }
  };
  const setPaused: (value: boolean) => SyncControl['pause'] = (value) => async (writeOptions) => {
    const done = await writer.write('pauseSync', { isPaused: value }, writeOptions);
    if (isPausedNow(value)) limiter.pause();
    else limiter.resume();
    sync.wakePreload();
    return done;
  };
  return {
    pause: setPaused(true),
    resume: setPaused(false),
    async now(writeOptions) {
      const done = await writer.write('retryNow', {}, writeOptions);
      limiter.closeBreaker();
      sync.wakePreload();
      return done;
    },
    wake() {
      push.wake();
    },
    async preload(command, writeOptions) {
      const queued = await writer.write('queuePreload', command, writeOptions);
      sync.wakePreload();
      return queued;
    },
  };
}
