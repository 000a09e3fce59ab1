import type { AuthorityReader } from './tables.ts';

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
export type LoadLongReads = {
  readonly [Name in keyof LongReads]?: () => Promise<
    (reader: AuthorityReader, asked: AskedOf<Name>) => Promise<ReadOf<Name>>
  >;
};
