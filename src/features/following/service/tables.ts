import type { Tenant, TenantFilter } from '../../../domain/access/principal.ts';
import type { License } from '../../../domain/license.ts';
import type { Page } from '../../../domain/page.ts';

/** An agent below that follows license keys here, with one credential. Times are epoch ms. */
export type Follower = {
  /** The number of the row, which is never used again. */
  number: number;
  agentId: string;
  reach: string;
  accountId: string;
  /** Null: all products of the account. */
  productKey: string | null;
  /** How many license keys it follows. */
  followed: number;
  createdAt: number;
  /** May be an hour old. */
  seenAt: number;
};

export type NewFollower = Omit<Follower, 'number'>;

/**
 * Reads what a follower is to be told: the followed licenses that have changed after a position, and the licenses with
 * `keys`. `position`: null reads only `keys`.
 */
export type FollowedQuery = {
  agentId: string;
  reach: string;
  tenant: Tenant;
  position: string | null;
  keys: readonly string[];
};

/** Everything in it is from the same instant. */
export type FollowedRead = {
  epoch: string;
  /** Changes after it are not in this read. */
  position: string;
  /** There may be more changes before the end of the history. */
  hasMore: boolean;
  licenses: readonly { license: License; revision: number }[];
  /** Keys without a license in the tenant. */
  absent: readonly string[];
};

/** The followers of a license that has changed after a position, by their numbers. */
export type ChangedFollowers = { position: string; hasMore: boolean; followers: readonly number[] };

export interface FollowerReads {
  get(agentId: string, reach: string): Follower | null;
  byNumber(number: number): Follower | null;
  list(filter: TenantFilter, page: Page): Follower[];
  count(filter: TenantFilter): number;
  countOfReach(reach: string): number;
  /**
   * The numbers of up to `limit` followers that were last seen before an instant, those that were silent for longest first.
   * `reach`: null: of all reaches.
   */
  idle(reach: string | null, before: number, limit: number): number[];
  /** Those of the keys that have a license in the tenant. */
  reached(tenant: Tenant, licenseKeys: readonly string[]): string[];
  /** Whether a text is a position of this history, and not ahead of it. */
  isPosition(position: string): boolean;
  followed(query: FollowedQuery): FollowedRead;
  /** `position`: null reads only the position. */
  ofChanges(position: string | null): ChangedFollowers;
}

export interface FollowerTable extends FollowerReads {
  add(follower: NewFollower): void;
  /** Notes that a follower was seen. */
  setSeen(number: number, seenAt: number): void;
  /** Also forgets what it follows. */
  remove(number: number): void;
  /** Returns how many keys it follows now. */
  follow(number: number, licenseKeys: readonly string[]): number;
  /** `licenseKeys`: null ends all. Returns how many keys it follows now. */
  unfollow(number: number, licenseKeys: readonly string[] | null): number;
  /** Ends up to `limit` follows of followers that were last seen before an instant. */
  pruneFollows(before: number, limit: number): number;
}

/** `productIds`: the products that the credential can see. */
export type ChainQuery = Omit<FollowedQuery, 'tenant'> & { productIds: readonly string[] };

/** What an agent tells the agents below it. */
export interface ChainReads {
  /**
   * Licenses as callers of this agent see them. `confirmedAt`: when all that the agent below follows were confirmed by the
   * authority, each by the last answer about it (epoch ms).
   */
  followed(query: ChainQuery): FollowedRead & { confirmedAt: number };
}

export interface ChainTable extends ChainReads {
  /** Notes that an agent below asks for keys (null: for all that it follows) that were last asked for before an instant. */
  touch(
    agent: number,
    licenseKeys: readonly string[] | null,
    at: { askedAt: number; before: number; refreshAt: number },
  ): void;
}

declare module '../../../service/tables.ts' {
  interface Reader {
    followers: FollowerReads;
    chain: ChainReads;
  }
  interface Transaction {
    followers: FollowerTable;
    chain: ChainTable;
  }
  interface AgentTablesOfFeatures {
    chain: true;
  }
  interface ListsOfFeatures {
    followers: true;
  }
}
