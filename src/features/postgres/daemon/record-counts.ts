import { countLicenses } from '../../../daemon/store/opened-store.ts';
import { type Clock, StorageError } from '../../../service/ports.ts';
import type { FreshnessCounts } from '../../../service/status.ts';
import type { AuthorityReader } from '../../../service/tables.ts';

/** How long a count is cached at least, in ms. */
const minCachedMs = 10_000;
/** A count is cached this many times as long as it took, so that counting takes a small part of the time. */
const cachedPerDuration = 50;

/**
 * Counts licenses in PostgreSQL, which reads every row: caches a count for a while, shares a running count among its
 * callers, and returns the last count while the database does not answer (null: there is none). Counter rows in the
 * database would make every sale wait for the same row.
 */
export function cachedCounts(
  reader: AuthorityReader,
  { clock, isReadable }: { clock: Pick<Clock, 'monotonic'>; isReadable: () => boolean },
): () => Promise<FreshnessCounts | null> {
  let last: FreshnessCounts | null = null;
  let until = 0;
  let counting: Promise<void> | null = null;
  const count = async (): Promise<void> => {
    const began = clock.monotonic();
    try {
      last = await countLicenses(reader);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    } finally {
      const now = clock.monotonic();
      until = now + Math.max(minCachedMs, (now - began) * cachedPerDuration);
      counting = null;
    }
  };
  return async () => {
    if (clock.monotonic() >= until && isReadable()) await (counting ??= count());
    return last;
  };
}
