import { features } from '../features.ts';
import type { AuthorityReader } from './tables.ts';

/** Reads of features that take long: what each is asked for, and what it reads. A feature adds its own reads. */
export interface LongReads {}

type Asked<Name extends keyof LongReads> = LongReads[Name] extends { asked: infer Asked } ? Asked : never;
type Read<Name extends keyof LongReads> = LongReads[Name] extends { read: infer Read } ? Read : never;

/** Runs a long read: in a thread of its own if the store is local. */
export type LongRead = <Name extends keyof LongReads>(name: Name, asked: Asked<Name>) => Promise<Read<Name>>;

/** How to load each long read of a feature. */
export type LoadLongReads = {
  readonly [Name in keyof LongReads]?: () => Promise<
    (reader: AuthorityReader, asked: Asked<Name>) => Promise<Read<Name>>
  >;
};

/** Runs a long read in this thread. */
export function longReadOn(reader: AuthorityReader): LongRead {
  return async <Name extends keyof LongReads>(name: Name, asked: Asked<Name>) => {
    const load = features.map(({ longReads }) => longReads?.[name]).find((each) => each !== undefined);
    if (load === undefined) throw new Error(`no feature reads ${String(name)}`);
    return await (
      await load()
    )(reader, asked);
  };
}
