import { features } from '../features.ts';
import type { LongRead } from '../service/long-read.ts';
import type { AuthorityReader } from '../service/tables.ts';

/** Runs the long reads of features in this thread. */
export function longReadOn(reader: AuthorityReader): LongRead {
  return async (name, asked) => {
    const load = features.map(({ longReads }) => longReads?.[name]).find((each) => each !== undefined);
    if (load === undefined) throw new Error('no feature has this read');
    return await (
      await load()
    )(reader, asked);
  };
}
