import { lazySyncServer } from '../../../src/features/following/daemon/sync-server.ts';
import { systemRandom } from '../../../src/daemon/system/machine.ts';
import type { SyncServer } from '../../../src/features/following/service/ports.ts';
import type { AuthorityReader } from '../../../src/service/tables.ts';
import type { ChangeFeed, Writer } from '../../../src/service/writer.ts';
import { silent } from '../silent-log.ts';

/** Answers agents; a wait of a minute takes 6 ms. */
export function quickSyncServer(parts: {
  reader: AuthorityReader;
  writer: Writer;
  changes: ChangeFeed;
}): SyncServer {
  const clock = {
    now: () => Date.now(),
    monotonic: () => performance.now() * 10_000,
    sleep: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  };
  return lazySyncServer({ ...parts, clock, random: systemRandom, log: silent });
}
