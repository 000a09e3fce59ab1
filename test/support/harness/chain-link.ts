import { createHash } from 'node:crypto';
import type { License } from '../../../src/domain/license.ts';
import type { Operation } from '../../../src/domain/outbox/operation.ts';
import type { Applied, Outcome } from '../../../src/domain/outbox/outcome.ts';
import { problems } from '../../../src/domain/problem/problem-table.ts';
import type { Problem, Result } from '../../../src/domain/problem/problem.ts';
import type {
  ChangesAnswer,
  FollowRequest,
  KnownAnswer,
  PushAnswer,
  SyncInfo,
  SyncUpstream,
  Upstream,
  UpstreamChange,
} from '../../../src/service/ports.ts';
import type { LicenseResponse, LicenseService } from '../../../src/service/services.ts';
import type { SyncServer } from '../../../src/service/sync/ports.ts';
import {
  readChanges,
  readInfo,
  readKnown,
  readPushReply,
  refusalOfNumber,
  writeFollow,
  writePush,
} from '../../../src/upstream/sync-wire.ts';
import type { JsonObject, Parsed } from '../../../src/upstream/wire.ts';
import { serializeProblem } from '../../../src/wire/response.ts';
import {
  changesParameters,
  pushParameters,
  readOperation,
  serializeChanges,
  serializeInfo,
  serializeKnown,
  serializePush,
} from '../../../src/wire/sync.ts';
import type { VirtualClock } from './virtual-clock.ts';

const never = new AbortController().signal;
const tenant = { accountId: 'default', productKey: 'press' };
const options = { actor: 'agent', requestId: null, idempotency: null };

/** The hop above an agent: its process may be replaced. */
export type Above = {
  readonly name: string;
  readonly service: LicenseService;
  readonly server: SyncServer;
  readonly clock: VirtualClock;
};

/** The way from an agent to the hop above it: the real bodies, without HTTP. A request takes 20 ms. */
export class ChainLink implements Upstream, SyncUpstream {
  /** Nothing arrives, neither requests nor answers. */
  isCut = false;
  /** Whether the answer to a request is lost. `what`: `verify`, `push`, … */
  loses: (what: string) => boolean = () => false;
  /** The bodies of pushes, in order. */
  readonly pushes: string[] = [];
  /** The requests, in order. */
  readonly asked: string[] = [];
  readonly #above: Above;
  readonly #clock: VirtualClock;

  /** `clock`: of no process, so that no request outlives its hop for ever. */
  constructor(above: Above, clock: VirtualClock) {
    this.#above = above;
    this.#clock = clock;
  }

  verify(_: string, licenseKey: string): Promise<Outcome<License>> {
    return this.#license('verify', () => this.#above.service.verify(tenant, licenseKey, never, null));
  }

  change({ licenseKey, kind }: UpstreamChange): Promise<Outcome<License>> {
    const request = { tenant, licenseKey, trigger: kind, waitMs: 0, actor: 'agent', idempotency: null };
    return this.#license(kind, () => this.#above.service.change(request, never));
  }

  createCoupon(): never {
    throw new Error('this chain has no coupons');
  }

  listCoupons(): never {
    throw new Error('this chain has no coupons');
  }

  getCoupon(): never {
    throw new Error('this chain has no coupons');
  }

  quoteOf(): never {
    throw new Error('this chain has no coupons');
  }

  info(): Promise<Outcome<SyncInfo>> {
    return this.#call('info', readInfo, async () => {
      const epoch = await this.#above.server.epoch();
      return epoch.ok
        ? { ok: true, value: serializeInfo({ instance: this.#above.name, epoch: epoch.value }) }
        : epoch;
    });
  }

  push(_: string, sent: { seq: number; body: string }): Promise<Outcome<PushAnswer>> {
    const pushed = JSON.parse(sent.body) as { operations: { id: string }[] };
    const ids = pushed.operations.map(({ id }) => id);
    const read = (body: JsonObject): Parsed<PushAnswer> => {
      const refusal = refusalOfNumber(body);
      return refusal === null ? readPushReply(body, { seq: sent.seq, ids }) : { value: refusal };
    };
    return this.#call('push', read, async () => {
      this.pushes.push(sent.body);
      const { agent, seq, operations } = valuesOf(pushParameters.read(membersOf(sent.body)));
      const digest = createHash('sha256').update(sent.body).digest('hex');
      const command = { agentId: agent, tenant, seq, digest, operations: operations.map(readOperation) };
      const applied = await this.#above.server.push(command, options);
      return applied.ok ? { ok: true, value: serializePush(applied.value) } : applied;
    });
  }

  changes(
    _: string,
    agent: string,
    request: FollowRequest,
    signal: AbortSignal,
  ): Promise<Outcome<ChangesAnswer>> {
    return this.#call('changes', readChanges, async () => {
      const body = valuesOf(changesParameters.read(membersOf(writeFollow(agent, request))));
      const { epoch = null, cursor = null, follow, unfollow, watch, wait } = body;
      const told = await this.#above.server.changes(
        { agentId: agent, tenant, epoch, cursor, follow, unfollow, watch, waitMs: wait * 1_000 },
        options,
        signal,
      );
      return told.ok ? { ok: true, value: serializeChanges(told.value) } : told;
    });
  }

  known(_: string, __: string, ids: readonly string[]): Promise<Outcome<KnownAnswer>> {
    return this.#call('known', readKnown, async () => ({
      ok: true,
      value: serializeKnown(await this.#above.server.known(tenant.accountId, ids)),
    }));
  }

  writePush(agent: string, seq: number, operations: readonly Operation[]): string {
    return writePush(agent, seq, operations);
  }

  async #license(
    what: string,
    ask: () => Promise<Result<LicenseResponse>> | Result<LicenseResponse>,
  ): Promise<Outcome<License>> {
    let provenance: LicenseResponse['provenance'] | null = null;
    const outcome = await this.#carry(what, async () => {
      const answered = await ask();
      if (!answered.ok) return outcomeOf(answered.problem);
      ({ provenance } = answered.value);
      return this.#applied(answered.value.license, provenance);
    });
    return outcome;
  }

  async #call<Value>(
    what: string,
    read: (body: JsonObject) => Parsed<Value>,
    ask: () => Promise<Result<object>>,
  ): Promise<Outcome<Value>> {
    return await this.#carry(what, async () => {
      const answered = await ask();
      const isOfNumber = !answered.ok && answered.problem.sequence !== undefined;
      if (!answered.ok && !isOfNumber) return outcomeOf(answered.problem);
      const body = answered.ok ? { data: answered.value } : serializeProblem(answered.problem, 'request');
      const parsed = read(JSON.parse(JSON.stringify(body)) as JsonObject);
      if ('fault' in parsed) throw new Error(`${what}: ${parsed.fault}`);
      return this.#applied(parsed.value, null);
    });
  }

  #applied<Value>(value: Value, provenance: LicenseResponse['provenance'] | null): Applied<Value> {
    const now = this.#above.clock.now();
    const isOwn = provenance === null || provenance.freshness === 'authoritative';
    const confirmedAt = isOwn ? now : (provenance.confirmedAt ?? 0);
    const pending = !isOwn && provenance.pending > 0 ? { isPending: true as const } : {};
    const common = { confirmedAt, isCached: false, instance: this.#above.name };
    return { outcome: 'applied', value, ...common, ...pending };
  }

  async #carry<Value>(what: string, carryOut: () => Promise<Outcome<Value>>): Promise<Outcome<Value>> {
    this.asked.push(what);
    await this.#clock.sleep(10, never);
    if (this.isCut) return lost;
    const loses = this.loses(what);
    // A hop that was killed answers nothing.
    const outcome = await carryOut().catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith(what)) throw error;
      return lost;
    });
    await this.#clock.sleep(10, never);
    return loses || this.isCut ? lost : outcome;
  }
}

const lost: Outcome<never> = {
  outcome: 'ambiguous',
  status: null,
  detail: 'the answer was lost',
  retryAfterMs: null,
};

function outcomeOf({ code, detail }: Problem): Outcome<never> {
  const { status } = problems[code];
  const common = { status, detail: `${code}: ${detail}`, retryAfterMs: null };
  if (status >= 500) return { outcome: 'ambiguous', ...common };
  return { outcome: 'not_applied', reason: status === 404 ? 'missing' : 'rejected', ...common };
}

function membersOf(body: string): ReadonlyMap<string, unknown> {
  const members = Object.entries(JSON.parse(body) as object);
  return new Map(members.filter(([, member]) => member !== null));
}

function valuesOf<Values>(read: { ok: true; values: Values } | { ok: false }): Values {
  if (!read.ok) throw new Error('the body is malformed');
  return read.values;
}
