import type { Clock } from '../../service/ports.ts';
import { StorageError } from '../../service/ports.ts';
import type { RecordCounts } from '../../service/status.ts';
import type { AuthorityReader } from '../../service/tables.ts';

/** Counts the licenses of an authority: its own records are always fresh. */
export async function countLicenses({ licenses }: AuthorityReader): Promise<RecordCounts> {
  const fresh = await licenses.count({ enabled: true });
  return { fresh, stale: 0, grace: 0, expired: 0, disabled: await licenses.count({ enabled: false }) };
}

/** How long a count is remembered at least, in ms. */
const rememberedMs = 10_000;
/** How many times as long as it took: a database that counts millions of rows does so a small part of its time. */
const timesItsOwn = 50;

/**
 * Counts licenses where that is read from every row, as in PostgreSQL: a count is remembered for a while, those who
 * ask at the same time share one, and where the database does not answer the last one holds (null: there is none).
 * Counters in the database would be rows that every sale waits for.
 */
export function rememberedCounts(
  reader: AuthorityReader,
  { clock, answers }: { clock: Pick<Clock, 'elapsed'>; answers: () => boolean },
): () => Promise<RecordCounts | null> {
  let last: RecordCounts | null = null;
  let until = 0;
  let counting: Promise<void> | null = null;
  const count = async (): Promise<void> => {
    const began = clock.elapsed();
    try {
      last = await countLicenses(reader);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    } finally {
      const now = clock.elapsed();
      until = now + Math.max(rememberedMs, (now - began) * timesItsOwn);
      counting = null;
    }
  };
  return async () => {
    if (clock.elapsed() >= until && answers()) await (counting ??= count());
    return last;
  };
}
