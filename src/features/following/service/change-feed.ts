import type { Tenant } from '../../../domain/access/principal.ts';
import { done, failWith, type Result } from '../../../domain/problem/problem.ts';
import { agentRetentionMs, reachOf } from '../../../domain/latchkey.ts';
import { seenEveryMs } from '../domain/change-feed.ts';
import type { Clock, Random, WriteOptions } from '../../../service/ports.ts';
import type { AuthorityReader } from '../../../service/tables.ts';
import type { Writer } from '../../../service/writer.ts';
import type { ChangesRequest, FollowedChanges, ChangeFeed, FeedStore } from './ports.ts';
import type { End, Wait, WaitingFollowers } from './waiting.ts';

/** The store of an authority, as followers see it. */
export function authorityStore({
  reader,
  writer,
  clock,
}: Pick<Parts, 'clock'> & { reader: AuthorityReader; writer: Writer }): FeedStore {
  return {
    isOffered: () => true,
    follow: (command, writeOptions) => writer.write('followKeys', command, writeOptions),
    async followed(query) {
      const confirmedAt = clock.now();
      const read = await reader.followers.followed(query);
      // No license leaves its product. A follower is not told that a key outside its reach has changed.
      const asked = new Set(query.keys);
      return { ...read, absent: read.absent.filter((key) => asked.has(key)), confirmedAt };
    },
    reached: (tenant, licenseKeys) => reader.followers.reached(tenant, licenseKeys),
  };
}

type Parts = {
  reader: Pick<AuthorityReader, 'followers' | 'settings' | 'idempotency'>;
  store: FeedStore;
  waiting: WaitingFollowers;
  clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>;
  random: Pick<Random, 'fraction'>;
  /** Limits how often a credential begins another follower; returns how many ms to wait. */
  newFollowers: { take(credential: string): number };
};

/** A follower that was silent for longer sends all its keys again. Its keys are kept for longer, counted from when it was noted as seen. */
const longestSilenceMs = agentRetentionMs - 2 * seenEveryMs;

/** How often the watched keys of a request that waits are looked up, in ms. */
const watchEveryMs = 1_000;

/** How many pages of the changes of other licenses are passed over before a follower must ask again. */
const maxPages = 20;

/** `position`: null: the follower sends all its keys again. `followed`: how many keys it follows. */
type Begun = { position: string | null; followed: number; isReset: boolean };

/** Answers followers from the store of an authority, or of an agent above them. */
export class StoreChangeFeed implements ChangeFeed {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#parts.waiting.count;
  }

  isWaiting(follower: number): boolean {
    return this.#parts.waiting.has(follower);
  }

  stopWaiting(): void {
    this.#parts.waiting.stop();
  }

  async epoch(): Promise<Result<string>> {
    const { store, reader } = this.#parts;
    return store.isOffered() ? done((await reader.settings.epoch()) ?? '') : notOffered();
  }

  async changes(
    request: ChangesRequest,
    { actor, requestId }: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<FollowedChanges>> {
    const { store } = this.#parts;
    // The epoch of this store may change as soon as its upstream has named itself.
    if (!store.isOffered()) return notOffered();
    const { agentId, tenant, unfollow, watch } = request;
    const begun = await this.#begin(request);
    // If the reset is lost, the number of keys must not fit the old cursor: so none is followed.
    const follow = begun.isReset ? [] : request.follow;
    const waitMs = begun.isNew ? this.#parts.newFollowers.take(actor ?? '') : 0;
    if (waitMs > 0) return tooManyNew(waitMs);
    const command = { agentId, tenant, startsAnew: begun.position === null, follow, unfollow };
    const stored = begun.mustWrite ? await store.follow(command, { actor, requestId }) : done(follow);
    if (!stored.ok) return stored;
    const followed = begun.mustWrite ? await this.#followedBy(request) : begun.followed;
    const read = await this.#read(request, { ...begun, followed }, stored.value);
    const reached = new Set(stored.value);
    const absent = [...read.absent, ...follow.filter((key) => !reached.has(key))];
    const isPutBack = await this.#isPutBack(request);
    const first = { ...read, absent, appeared: await this.#appeared(tenant, watch), isPutBack };
    // Nothing of the request is kept while it waits, but the follower, the position, the watched keys and the time.
    if (request.waitMs === 0 || isWorthTelling(first)) return done(first);
    return await this.#wait({ agentId, tenant, watch, waitMs: request.waitMs }, first, signal);
  }

  /** Whether the answer to a change that this store has carried out is missing. */
  async #isPutBack({ carriedOut }: Pick<ChangesRequest, 'carriedOut'>): Promise<boolean> {
    if (carriedOut === null) return false;
    return (await this.#parts.reader.idempotency.get(carriedOut.credential, carriedOut.key)) === null;
  }

  /** The watched keys that have a license now. */
  async #appeared(tenant: Tenant, watch: readonly string[]): Promise<readonly string[]> {
    return watch.length === 0 ? [] : await this.#parts.store.reached(tenant, watch);
  }

  /** How many license keys a follower has. */
  async #followedBy({ agentId, tenant }: Pick<ChangesRequest, 'agentId' | 'tenant'>): Promise<number> {
    return (await this.#parts.reader.followers.get(agentId, reachOf(tenant)))?.followed ?? 0;
  }

  /** Finds where the follower is in the history. */
  async #begin({
    agentId,
    tenant,
    epoch,
    cursor,
    follow,
    unfollow,
  }: ChangesRequest): Promise<Begun & { mustWrite: boolean; isNew: boolean }> {
    const { reader, clock } = this.#parts;
    const { followers, settings } = reader;
    const follower = await followers.get(agentId, reachOf(tenant));
    const at = cursor === null ? null : readCursor(cursor);
    const isKnown =
      follower !== null &&
      at !== null &&
      clock.now() - at.readAt <= longestSilenceMs &&
      at.followed === follower.followed &&
      epoch === (await settings.epoch()) &&
      (await followers.isPosition(at.position));
    const isStale = follower === null || clock.now() - follower.seenAt > seenEveryMs;
    const mustWrite = !isKnown || isStale || follow.length > 0 || unfollow.length > 0;
    const position = isKnown ? at.position : null;
    const isReset = !isKnown && cursor !== null;
    return { position, followed: follower?.followed ?? 0, isReset, mustWrite, isNew: follower === null };
  }

  async #read(
    { agentId, tenant }: Pick<ChangesRequest, 'agentId' | 'tenant'>,
    { position, followed, isReset }: Begun,
    keys: readonly string[],
  ): Promise<FollowedChanges> {
    const { store, clock } = this.#parts;
    const query = { agentId, reach: reachOf(tenant), tenant };
    const readAt = clock.now();
    let read = await store.followed({ ...query, position, keys });
    for (let page = 1; page < maxPages && read.hasMore && isEmpty(read); page += 1) {
      read = await store.followed({ ...query, position: read.position, keys: [] });
    }
    const { epoch, confirmedAt, hasMore, absent, licenses } = read;
    const cursor = writeCursor({ readAt, followed, position: read.position });
    return {
      epoch,
      cursor,
      confirmedAt,
      changes: licenses,
      absent,
      appeared: [],
      hasMore,
      isReset,
      isPutBack: false,
    };
  }

  async #wait(
    request: Pick<ChangesRequest, 'agentId' | 'tenant' | 'watch' | 'waitMs'>,
    first: FollowedChanges,
    signal: AbortSignal,
  ): Promise<Result<FollowedChanges>> {
    const { reader, waiting, clock, random } = this.#parts;
    const follower = await reader.followers.get(request.agentId, reachOf(request.tenant));
    if (follower === null) return done(first);
    // A fleet must not come back all at once.
    const endsAt = clock.monotonic() + request.waitMs * (1 - random.fraction() / 16);
    for (let last = first; ;) {
      const wait = await waiting.begin(follower.number, { forMs: endsAt - clock.monotonic(), signal });
      last = await this.#read(request, begunAt(last.cursor), []);
      if (isWorthTelling(last)) {
        wait.cancel();
        return done(last);
      }
      const ended = await this.#endOf(wait, request);
      if (ended.appeared.length > 0) return done({ ...last, appeared: ended.appeared });
      if (ended.end === 'over') {
        return done(await this.#read(request, begunAt(last.cursor), []));
      }
    }
  }

  /** Waits until the wait is over, or a watched key has appeared. Without watched keys it needs no timer. */
  async #endOf(
    wait: Wait,
    { tenant, watch }: Pick<ChangesRequest, 'tenant' | 'watch'>,
  ): Promise<{ end: End; appeared: readonly string[] }> {
    if (watch.length === 0) return { end: await wait.end, appeared: [] };
    const { clock } = this.#parts;
    const ending = new AbortController();
    void wait.end.then(() => ending.abort());
    try {
      for (;;) {
        await clock.sleep(watchEveryMs, ending.signal).catch(() => undefined);
        if (ending.signal.aborted) return { end: await wait.end, appeared: [] };
        const appeared = await this.#appeared(tenant, watch);
        if (appeared.length > 0) return { end: 'changed', appeared };
      }
    } finally {
      wait.cancel();
    }
  }
}

function tooManyNew(waitMs: number): Result<never> {
  const retryAfterS = Math.ceil(waitMs / 1000);
  return failWith('rate_limited', 'This credential begins too many followers.', { retryAfterS });
}

function isEmpty({
  licenses,
  absent,
}: {
  licenses: readonly unknown[];
  absent: readonly unknown[];
}): boolean {
  return licenses.length === 0 && absent.length === 0;
}

function isWorthTelling({
  changes,
  absent,
  appeared,
  hasMore,
  isReset,
  isPutBack,
}: FollowedChanges): boolean {
  return changes.length > 0 || absent.length > 0 || appeared.length > 0 || hasMore || isReset || isPutBack;
}

/**
 * `readAt`: by this store's clock (epoch ms). `followed`: how many keys it follows. A request that arrives late, after
 * the follower has sent it again, changes what it follows: the number then shows that it must begin anew.
 */
type Cursor = { readAt: number; followed: number; position: string };

function writeCursor({ readAt, followed, position }: Cursor): string {
  return `${readAt}/${followed}/${position}`;
}

/** Null: it is not a cursor. */
function readCursor(text: string): Cursor | null {
  const [, readAt, followed, position] = /^(\d{1,15})\/(\d{1,15})\/(.+)$/s.exec(text) ?? [];
  if (readAt === undefined || followed === undefined || position === undefined) return null;
  return { readAt: Number(readAt), followed: Number(followed), position };
}

/** Where a request that waits continues. */
function begunAt(cursor: string): Begun {
  const { position, followed } = readCursor(cursor) ?? { position: null, followed: 0 };
  return { position, followed, isReset: false };
}

function notOffered(): Result<never> {
  return failWith('not_the_authority', 'This agent does not know yet what its upstream is.');
}
