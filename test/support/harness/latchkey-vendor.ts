import type { Quote } from '../../../src/domain/checkout/quote.ts';
import type { LicenseOperationKind, Operation } from '../../../src/domain/outbox/operation.ts';
import type { Ambiguous, NotApplied, Outcome } from '../../../src/domain/outbox/outcome.ts';
import { licenseAfter, type License } from '../../../src/domain/license.ts';
import type {
  ChangesAnswer,
  FollowRequest,
  KnownAnswer,
  PushAnswer,
  SyncInfo,
  SyncUpstream,
} from '../../../src/service/ports.ts';
import { writePush } from '../../../src/upstream/sync-wire.ts';
import type { CouponAuthority } from './coupon-authority.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** The licenses and coupons of the plain upstream. */
type Vendor = { readonly licenses: Map<string, License>; readonly coupons: CouponAuthority };

type Row = { seq: number; body: string; reply: PushAnswer };
type Sent = { agent: string; seq: number; operations: readonly SentOperation[] };
type SentOperation = { id: string; kind: LicenseOperationKind; license_key: string };

export const lostAnswer: Ambiguous = {
  outcome: 'ambiguous',
  status: null,
  detail: 'the answer was lost',
  retryAfterMs: null,
};

export const hidden: NotApplied = {
  outcome: 'not_applied',
  reason: 'missing',
  status: 404,
  detail: 'HTTP 404',
  retryAfterMs: null,
};

/** `/sync/v1` of a vendor in memory, which answers after 20 ms. */
export class LatchkeyVendor implements SyncUpstream {
  /** The first 16 characters name the store. */
  epoch = '0123456789abcdef-1';
  /** The requests, in order. */
  readonly asked: string[] = [];
  /** The bodies of pushes, in order. */
  readonly pushes: string[] = [];
  /** Replaces a request, which is not carried out. */
  instead: (what: string) => Outcome<never> | null = () => null;
  /** Replaces an answer; the request was carried out. */
  loses: (what: string) => Outcome<never> | null = () => null;
  /** What becomes of an operation that is not applied. */
  refuses: (operation: SentOperation) => { outcome: 'refused' | 'conflicted'; code: string } | null = () =>
    null;
  readonly rows: Map<string, Row> = new Map<string, Row>();
  readonly seen: Map<string, 'applied' | 'refused' | 'conflicted'> = new Map();
  readonly #vendor: Vendor;
  readonly #clock: VirtualClock;
  /** By agent: what it follows. */
  readonly #followed = new Map<string, Set<string>>();
  #number = 0;
  readonly #changedAt = new Map<string, number>();
  readonly #waiting = new Set<() => void>();

  constructor(vendor: Vendor, clock: VirtualClock) {
    this.#vendor = vendor;
    this.#clock = clock;
  }

  /** How often the vendor was asked for changes. */
  questions = 0;
  /** The most bytes that the keys of such a request had. */
  mostBytes = 0;
  /** The license keys that each request for changes watched, in order. */
  readonly watched: (readonly string[])[] = [];

  /** Sells a license. */
  sell(licenseKey: string): void {
    const rest = { productKey: 'link', buyerEmail: 'b@example.com', uses: 0, enabled: true, createdAt: 0 };
    this.#put({ licenseKey, ...rest });
  }

  /** Changes a license as a seller does. */
  set(licenseKey: string, change: Partial<License>): void {
    const license = this.#vendor.licenses.get(licenseKey);
    if (license === undefined) throw new Error(`there is no ${licenseKey}`);
    this.#put({ ...license, ...change });
  }

  info(_: string | null, signal: AbortSignal): Promise<Outcome<SyncInfo>> {
    const limits = { operations: 500, bytes: 256 * 1024 };
    return this.#answer('info', signal, () => ({
      instance: 'vendor',
      epoch: this.epoch,
      limits,
      maxWaitS: 25,
    }));
  }

  push(
    reach: string | null,
    { body }: { seq: number; body: string },
    signal: AbortSignal,
  ): Promise<Outcome<PushAnswer>> {
    return this.#answer('push', signal, () => {
      this.pushes.push(body);
      if (reach === null) return this.#vendor.coupons.push(body);
      return this.#carryOut(JSON.parse(body) as Sent, body);
    });
  }

  async changes(
    _: string,
    agent: string,
    request: FollowRequest,
    signal: AbortSignal,
  ): Promise<Outcome<ChangesAnswer>> {
    this.questions += 1;
    const bytes = Buffer.byteLength(JSON.stringify([request.follow, request.unfollow]));
    this.mostBytes = Math.max(this.mostBytes, bytes);
    this.watched.push(request.watch);
    // A real upstream was restarted with another epoch, which ended its requests.
    const { epoch } = this;
    const isReset = request.epoch !== null && request.epoch !== epoch;
    const followed = this.#followed.get(agent) ?? new Set();
    if (isReset) followed.clear();
    this.#followed.set(agent, followed);
    for (const key of request.unfollow) followed.delete(key);
    for (const key of request.follow) followed.add(key);
    const since = isReset ? 0 : Number(request.cursor ?? 0);
    const appeared = (): string[] => request.watch.filter((key) => this.#vendor.licenses.has(key));
    const isNews = (): boolean =>
      appeared().length > 0 || [...followed].some((key) => (this.#changedAt.get(key) ?? 0) > since);
    if (request.waitS > 0 && !isNews()) await this.#waitForChange(request.waitS * 1000, signal);
    if (epoch !== this.epoch) return lostAnswer;
    return await this.#answer('changes', signal, () => {
      const keys = [...followed].filter(
        (key) => request.follow.includes(key) || (this.#changedAt.get(key) ?? 0) > since,
      );
      const licenses = keys.flatMap((key) => this.#vendor.licenses.get(key) ?? []);
      return {
        epoch: this.epoch,
        cursor: String(this.#number),
        lastSeq: this.rows.get(agent)?.seq ?? 0,
        confirmedAt: this.#clock.now(),
        licenses: licenses.map((license) => ({ license, revision: 1 })),
        absent: keys.filter((key) => !this.#vendor.licenses.has(key)),
        appeared: appeared(),
        hasMore: false,
        isReset,
      };
    });
  }

  known(
    reach: string | null,
    _agent: string,
    ids: readonly string[],
    signal: AbortSignal,
  ): Promise<Outcome<KnownAnswer>> {
    return this.#answer('known', signal, () => {
      if (reach === null) return this.#vendor.coupons.known(ids);
      return ids.map((id) => ({ id, outcome: this.seen.get(id) ?? 'not_seen', code: null }));
    });
  }

  quoteOf(order: string, signal: AbortSignal): Promise<Outcome<Quote>> {
    return this.#answer('quote', signal, () => {
      const redemption = this.#vendor.coupons.redemption(order);
      if (redemption === null) throw new Error('no test asks for a voided redemption');
      return redemption.quote;
    });
  }

  writePush(agent: string, seq: number, operations: readonly Operation[]): string {
    return writePush(agent, seq, operations);
  }

  #carryOut({ agent, seq, operations }: Sent, body: string): PushAnswer {
    const row = this.rows.get(agent);
    if (row?.seq === seq) return row.body === body ? row.reply : { kind: 'reused' };
    if (seq !== (row?.seq ?? 0) + 1)
      return { kind: 'out_of_sequence', last: row?.seq ?? 0, epoch: this.epoch };
    const results: Record<string, { outcome: 'refused' | 'conflicted'; code: string }> = {};
    for (const operation of operations) {
      const result = this.#apply(operation);
      if (result !== null) results[operation.id] = result;
    }
    const reply: PushAnswer = { kind: 'results', epoch: this.epoch, results };
    this.rows.set(agent, { seq, body, reply });
    return reply;
  }

  #apply(operation: SentOperation): { outcome: 'refused' | 'conflicted'; code: string } | null {
    if (this.seen.has(operation.id)) return null;
    const license = this.#vendor.licenses.get(operation.license_key);
    const refused =
      license === undefined
        ? ({ outcome: 'refused', code: 'license_not_found' } as const)
        : this.refuses(operation);
    this.seen.set(operation.id, refused?.outcome ?? 'applied');
    if (refused !== null || license === undefined) return refused;
    this.#put(licenseAfter(license, operation.kind));
    return null;
  }

  #put(license: License): void {
    this.#vendor.licenses.set(license.licenseKey, license);
    this.#number += 1;
    this.#changedAt.set(license.licenseKey, this.#number);
    for (const wake of this.#waiting) wake();
  }

  async #waitForChange(ms: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController();
    const end = (): void => ending.abort();
    this.#waiting.add(end);
    signal.addEventListener('abort', end, { once: true });
    await this.#clock.sleep(ms, ending.signal).catch(() => undefined);
    this.#waiting.delete(end);
  }

  async #answer<Value>(
    what: string,
    signal: AbortSignal,
    work: () => Value | Promise<Value>,
  ): Promise<Outcome<Value>> {
    this.asked.push(what);
    await this.#clock.sleep(20, signal).catch(() => undefined);
    if (signal.aborted) return lostAnswer;
    const early = this.instead(what);
    if (early !== null) return early;
    const value = await work();
    const confirmedAt = this.#clock.now();
    return (
      this.loses(what) ?? { outcome: 'applied', value, confirmedAt, isCached: false, instance: 'vendor' }
    );
  }
}
