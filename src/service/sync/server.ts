import type { Tenant } from '../../domain/access/principal.ts';
import { done, failWith, type Result } from '../../domain/problem/problem.ts';
import { reachOf, seenEveryMs, syncRetentionMs, timeOfId } from '../../domain/sync/push.ts';
import { dayMs } from '../../domain/time.ts';
import type { Clock, Random, WriteOptions } from '../ports.ts';
import type { AuthorityReader } from '../tables.ts';
import type { Writer } from '../writer.ts';
import { prunedSetting } from './follow.ts';
import type { ChangesRequest, FollowedChanges, KnownOperation, SyncServer, SyncStore } from './ports.ts';
import type { AppliedPush, ApplyPush } from './push.ts';
import type { End, Wait, WaitingAgents } from './waiting.ts';

/** The store of an authority, as agents see it. */
export function authorityStore({
  reader,
  writer,
  clock,
}: Pick<Parts, 'clock'> & { reader: AuthorityReader; writer: Writer }): SyncStore {
  return {
    isOffered: () => true,
    push: (command, writeOptions) => writer.write('applyPush', command, writeOptions),
    follow: (command, writeOptions) => writer.write('followKeys', command, writeOptions),
    async followed(query) {
      const confirmedAt = clock.now();
      const read = await reader.sync.followed(query);
      // No license leaves its product. An agent is not told that a key outside its reach has changed.
      const asked = new Set(query.keys);
      return { ...read, absent: read.absent.filter((key) => asked.has(key)), confirmedAt };
    },
    isTaken: () => false,
    reached: (tenant, licenseKeys) => reader.sync.reached(tenant, licenseKeys),
  };
}

type Parts = {
  reader: Pick<AuthorityReader, 'sync' | 'settings'>;
  store: SyncStore;
  waiting: WaitingAgents;
  clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>;
  random: Pick<Random, 'fraction'>;
  /** Limits how often a credential begins another follower; returns how many ms to wait. */
  newFollowers: { take(credential: string): number };
  /** Counts an answered push: `applied`, `repeated` or the code of a problem, and its operations by their outcome. */
  count: (result: string, outcomes: readonly string[]) => void;
};

/** A follower that was silent for longer sends all its keys again. Its keys are kept for longer, counted from when it was noted as seen. */
const longestSilenceMs = syncRetentionMs - 2 * seenEveryMs;

/** The clock of an agent may be this much ahead, in ms. */
const aheadMs = dayMs;
/** How often the watched keys of a request that waits are looked up, in ms. */
const watchEveryMs = 1_000;

/** How many pages of other agents' changes are passed over before the agent must ask again. */
const maxPages = 20;

/** `position`: null: the agent sends all its keys again. `followed`: how many keys it follows. */
type Begun = { position: string | null; followed: number; isReset: boolean };

/** Answers agents from the store of an authority, or of an agent above them. */
export class StoreSyncServer implements SyncServer {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get waiting(): number {
    return this.#parts.waiting.count;
  }

  isWaiting(agent: number): boolean {
    return this.#parts.waiting.has(agent);
  }

  stopWaiting(): void {
    this.#parts.waiting.stop();
  }

  async epoch(): Promise<Result<string>> {
    const { store, reader } = this.#parts;
    if (store.isOffered()) return done(await reader.sync.epoch());
    return failWith('not_the_authority', 'The upstream of this agent is not known to speak /sync/v1.');
  }

  async push(
    command: ApplyPush,
    { actor, requestId }: WriteOptions,
  ): Promise<Result<AppliedPush & { epoch: string }>> {
    const applied = await this.#parts.store.push(command, { actor, requestId });
    if (!applied.ok) this.#parts.count(applied.problem.code, []);
    else if (applied.unchanged === true) this.#parts.count('repeated', []);
    else {
      const { results } = applied.value;
      this.#parts.count(
        'applied',
        results.map(({ outcome }) => outcome),
      );
    }
    return applied.ok ? done({ ...applied.value, epoch: await this.#parts.reader.sync.epoch() }) : applied;
  }

  async known(accountId: string, ids: readonly string[]): Promise<KnownOperation[]> {
    const { store, reader } = this.#parts;
    const { sync, settings } = reader;
    // An outcome that is removed between the two reads is too old.
    const stored = await sync.outcomes(accountId, ids);
    const pruned = await settings.get(prunedSetting);
    const outcomes = new Map(stored.map((each) => [each.id, each]));
    const found = ids.map(async (id): Promise<KnownOperation> => {
      const known = outcomes.get(id);
      if (known !== undefined) return { id, outcome: known.outcome, code: known.code };
      if (await store.isTaken(id)) return { id, outcome: 'applied', code: null };
      const isTooOld = pruned !== null && timeOfId(id) < Number(pruned) + aheadMs;
      return { id, outcome: isTooOld ? 'too_old' : 'not_seen', code: null };
    });
    return await Promise.all(found);
  }

  async changes(
    request: ChangesRequest,
    { actor, requestId }: WriteOptions,
    signal: AbortSignal,
  ): Promise<Result<FollowedChanges>> {
    const { store } = this.#parts;
    const { agentId, tenant, follow, unfollow, watch } = request;
    const begun = await this.#begin(request);
    const waitMs = begun.isNew ? this.#parts.newFollowers.take(actor ?? '') : 0;
    if (waitMs > 0) return tooManyNew(waitMs);
    const command = { agentId, tenant, startsAnew: begun.position === null, follow, unfollow };
    const stored = begun.mustWrite ? await store.follow(command, { actor, requestId }) : done(follow);
    if (!stored.ok) return stored;
    const followed = begun.mustWrite ? await this.#followedBy(request) : begun.followed;
    const read = await this.#read(request, { ...begun, followed }, stored.value);
    const reached = new Set(stored.value);
    const absent = [...read.absent, ...follow.filter((key) => !reached.has(key))];
    const first = { ...read, absent, appeared: await this.#appeared(tenant, watch) };
    // Nothing of the request is kept while it waits, but the agent, the position, the watched keys and the time.
    if (request.waitMs === 0 || isWorthTelling(first)) return done(first);
    return await this.#wait({ agentId, tenant, watch, waitMs: request.waitMs }, first, signal);
  }

  /** The watched keys that have a license now. */
  async #appeared(tenant: Tenant, watch: readonly string[]): Promise<readonly string[]> {
    return watch.length === 0 ? [] : await this.#parts.store.reached(tenant, watch);
  }

  /** How many license keys an agent follows. */
  async #followedBy({ agentId, tenant }: Pick<ChangesRequest, 'agentId' | 'tenant'>): Promise<number> {
    return (await this.#parts.reader.sync.agent(agentId, reachOf(tenant)))?.followed ?? 0;
  }

  /** Finds where the agent is in the history. */
  async #begin({
    agentId,
    tenant,
    epoch,
    cursor,
    follow,
    unfollow,
  }: ChangesRequest): Promise<Begun & { mustWrite: boolean; isNew: boolean }> {
    const { reader, clock } = this.#parts;
    const { sync } = reader;
    const agent = await sync.agent(agentId, reachOf(tenant));
    const at = cursor === null ? null : readCursor(cursor);
    const isKnown =
      agent !== null &&
      at !== null &&
      clock.now() - at.readAt <= longestSilenceMs &&
      at.followed === agent.followed &&
      epoch === (await sync.epoch()) &&
      (await sync.isPosition(at.position));
    const isStale = agent === null || clock.now() - agent.seenAt > seenEveryMs;
    const mustWrite = !isKnown || isStale || follow.length > 0 || unfollow.length > 0;
    const position = isKnown ? at.position : null;
    const isReset = !isKnown && cursor !== null;
    return { position, followed: agent?.followed ?? 0, isReset, mustWrite, isNew: agent === null };
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
    const { epoch, lastSeq, confirmedAt, hasMore, absent, licenses } = read;
    const cursor = writeCursor({ readAt, followed, position: read.position });
    return { epoch, cursor, lastSeq, confirmedAt, changes: licenses, absent, appeared: [], hasMore, isReset };
  }

  async #wait(
    request: Pick<ChangesRequest, 'agentId' | 'tenant' | 'watch' | 'waitMs'>,
    first: FollowedChanges,
    signal: AbortSignal,
  ): Promise<Result<FollowedChanges>> {
    const { reader, waiting, clock, random } = this.#parts;
    const agent = await reader.sync.agent(request.agentId, reachOf(request.tenant));
    if (agent === null) return done(first);
    // A fleet must not come back all at once.
    const endsAt = clock.monotonic() + request.waitMs * (1 - random.fraction() / 16);
    for (let last = first; ;) {
      const wait = await waiting.begin(agent.number, { forMs: endsAt - clock.monotonic(), signal });
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

function isWorthTelling({ changes, absent, appeared, hasMore, isReset }: FollowedChanges): boolean {
  return changes.length > 0 || absent.length > 0 || appeared.length > 0 || hasMore || isReset;
}

/**
 * `readAt`: by this store's clock (epoch ms). `followed`: how many keys the agent follows. A request that arrives late, after
 * the agent has sent it again, changes what the agent follows: the number then shows that the agent must begin anew.
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
