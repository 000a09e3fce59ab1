import type { AuthorityReader } from './tables.ts';
import { features } from '../features.ts';

declare module '../feature.ts' {
  interface Feature {
    readonly longReads?: LoadLongReads;
  }
}

/** Reads of features that take long: what each is asked for, and what it reads. A feature adds its own reads. */
export interface LongReads {}

type AskedOf<Name extends keyof LongReads> = LongReads[Name] extends { asked: infer Asked } ? Asked : never;
type ReadOf<Name extends keyof LongReads> = LongReads[Name] extends { read: infer Read } ? Read : never;

/** Runs a long read: in a thread of its own if the store is local. */
export type LongRead = <Name extends keyof LongReads>(
  name: Name,
  asked: AskedOf<Name>,
) => Promise<ReadOf<Name>>;

/** How to load each long read of a feature. */
type LoadLongReads = {
  readonly [Name in keyof LongReads]?: () => Promise<
    (reader: AuthorityReader, asked: AskedOf<Name>) => Promise<ReadOf<Name>>
  >;
};

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
