import type { Tenant } from '../../../domain/access/principal.ts';
import type { License } from '../../../domain/license.ts';
import type { Outcome } from '../../../domain/outbox/outcome.ts';
import type { Result } from '../../../domain/problem/problem.ts';
import type { Idempotency, WriteOptions } from '../../../service/ports.ts';
import type { Awaitable } from '../../../service/tables.ts';
import type { FollowKeys } from './followers.ts';
import type { FollowedQuery, FollowedRead } from './tables.ts';

/** `epoch` and `cursor`: from the answer before; null: the first request. */
export type FollowRequest = {
  epoch: string | null;
  cursor: string | null;
  follow: readonly string[];
  unfollow: readonly string[];
  /** Keys that this agent answers 404. */
  watch: readonly string[];
  /** The id of the last use that the upstream has carried out; null: none. */
  carriedOut: string | null;
  waitS: number;
};

/** Changes of followed license keys. */
export type ChangesAnswer = {
  epoch: string;
  cursor: string;
  /** When all followed keys were as they are known here, with these changes (epoch ms). */
  confirmedAt: number;
  licenses: readonly { license: License; revision: number }[];
  absent: readonly string[];
  /** Watched keys that the upstream has now. */
  appeared: readonly string[];
  hasMore: boolean;
  /** The upstream follows no key any more, nor those of this request. */
  isReset: boolean;
  /** The upstream does not know what it has carried out (`FollowRequest`): its store was put back. */
  isPutBack: boolean;
};

/** Asks the change feed of an upstream that is a Latchkey. Each call is one request; failures are outcomes. */
export type AskForChanges = (
  productId: string,
  agent: string,
  request: FollowRequest,
  signal: AbortSignal,
) => Promise<Outcome<ChangesAnswer>>;

/** What a follower asks. */
export type ChangesRequest = {
  agentId: string;
  tenant: Tenant;
  /** From the last reply; null: none yet. */
  epoch: string | null;
  cursor: string | null;
  follow: readonly string[];
  unfollow: readonly string[];
  /** Keys that the follower answers 404. This side does not store them. */
  watch: readonly string[];
  /** The stored answer to the last change of this follower; null: it names none. */
  carriedOut: Pick<Idempotency, 'credential' | 'key'> | null;
  waitMs: number;
};

/** What a follower is told about its license keys. */
export type FollowedChanges = {
  epoch: string;
  cursor: string;
  /**
   * All followed licenses that are not in `changes` are unchanged at this instant (epoch ms), unless `hasMore`. An agent in
   * the middle of a chain has it from its upstream, so it may be long ago.
   */
  confirmedAt: number;
  changes: readonly { license: License; revision: number }[];
  /** Followed keys without a license in the reach. */
  absent: readonly string[];
  /** Watched keys that have a license in the reach now. */
  appeared: readonly string[];
  /** There are more changes: ask again at once. */
  hasMore: boolean;
  /** The follower must send all its keys again: none is followed. */
  isReset: boolean;
  /** This store does not know a change that it has carried out: an older copy of the store was put in its place. */
  isPutBack: boolean;
};

/** What is behind `/sync/v1`: an authority, or an agent in the middle of a chain, tells followers what has changed. */
export interface ChangeFeed {
  /** Refused while an agent does not follow license keys itself, because its upstream is no Latchkey. */
  epoch(): Promise<Result<string>>;
  /** Waits until there is something to tell, or the time is over. */
  changes(
    request: ChangesRequest,
    writeOptions: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<FollowedChanges>>;
  /** How many requests wait for a change. */
  readonly waiting: number;
  /** Whether a follower waits for a change at this process. */
  isWaiting(follower: number): boolean;
  /** Ends all waits, now and later: the requests are answered as if their time were over. */
  stopWaiting(): void;
}

/** What differs between an authority and an agent in the middle of a chain. */
export type FeedStore = {
  /** Whether followers may begin to use it. */
  isOffered: () => boolean;
  /** Returns the keys that are followed: those of the request that are within the reach. */
  follow: (command: FollowKeys, writeOptions: Partial<WriteOptions>) => Promise<Result<readonly string[]>>;
  /** `confirmedAt`: as in `FollowedChanges`. */
  followed: (query: FollowedQuery) => Awaitable<FollowedRead & { confirmedAt: number }>;
  /** Those of the keys that a caller with the credential gets a license for. */
  reached: (tenant: Tenant, licenseKeys: readonly string[]) => Awaitable<readonly string[]>;
};
