import type { Tenant } from '../../domain/access/principal.ts';
import type { License } from '../../domain/license.ts';
import type { Result } from '../../domain/problem/problem.ts';
import type { OperationOutcome } from '../../domain/sync/push.ts';
import type { WriteOptions } from '../ports.ts';
import type { Awaitable } from '../tables.ts';
import type { FollowKeys } from './follow.ts';
import type { AppliedPush, ApplyPush } from './push.ts';
import type { FollowedQuery, FollowedRead } from './tables.ts';

/** `not_seen`: certainly not applied here. `too_old`: its outcome may have been removed. */
export type KnownOperation = {
  id: string;
  outcome: OperationOutcome | 'not_seen' | 'too_old';
  /** Why it was refused or conflicted. */
  code: string | null;
};

export type ChangesRequest = {
  agentId: string;
  tenant: Tenant;
  /** From the last reply; null: none yet. */
  epoch: string | null;
  cursor: string | null;
  follow: readonly string[];
  unfollow: readonly string[];
  /** Keys that the agent answers 404. This side does not store them. */
  watch: readonly string[];
  waitMs: number;
};

/** What an agent is told about the license keys that it follows. */
export type FollowedChanges = {
  epoch: string;
  cursor: string;
  /** The last push of the agent that the licenses contain. */
  lastSeq: number;
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
  /** The agent must send all its keys again: only those of this request are followed. */
  isReset: boolean;
};

/** The side of /sync/v1 that agents ask: an authority, or an agent in the middle of a chain. */
export interface SyncServer {
  /** Refused while the upstream of an agent is not known to speak /sync/v1: the agents below use the plain API as well. */
  epoch(): Promise<Result<string>>;
  push(command: ApplyPush, writeOptions: WriteOptions): Promise<Result<AppliedPush & { epoch: string }>>;
  known(accountId: string, ids: readonly string[]): Promise<KnownOperation[]>;
  /** Waits until there is something to tell, or the time is over. */
  changes(
    request: ChangesRequest,
    writeOptions: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<FollowedChanges>>;
  /** How many requests wait for a change. */
  readonly waiting: number;
  /** Whether an agent waits for a change at this process. */
  isWaiting(agent: number): boolean;
  /** Ends all waits, now and later: the requests are answered as if their time were over. */
  stopWaiting(): void;
}

/** What differs between an authority and an agent in the middle of a chain. */
export type SyncStore = {
  /** Whether agents may begin to use it. */
  isOffered: () => boolean;
  push: (command: ApplyPush, writeOptions: Partial<WriteOptions>) => Promise<Result<AppliedPush>>;
  /** Returns the keys that are followed: those of the request that are within the reach. */
  follow: (command: FollowKeys, writeOptions: Partial<WriteOptions>) => Promise<Result<readonly string[]>>;
  /** `confirmedAt`: as in `FollowedChanges`. */
  followed: (query: FollowedQuery) => Awaitable<FollowedRead & { confirmedAt: number }>;
  /** Whether an operation was taken although its outcome is not stored. */
  isTaken: (id: string) => Awaitable<boolean>;
  /** Those of the keys that a caller with the credential gets a license for. */
  reached: (tenant: Tenant, licenseKeys: readonly string[]) => Awaitable<readonly string[]>;
};
