import { formatDatetime } from '../../../src/domain/datetime.ts';
import type { Coupon, CouponTerms } from '../../../src/domain/coupon.ts';
import { changeLicense, type License } from '../../../src/domain/license.ts';
import type { LicenseOperationKind } from '../../../src/domain/operation.ts';
import type { Outcome } from '../../../src/domain/outcome.ts';
import type { Upstream } from '../../../src/service/ports.ts';
import type { Page } from '../../../src/service/tables.ts';
import { classify, type Parsed } from '../../../src/upstream/classification.ts';
import type { Exchange } from '../../../src/upstream/exchange.ts';
import { readCoupon, readCoupons, readLicense } from '../../../src/upstream/wire.ts';
import type { VirtualClock } from '../../support/virtual-clock.ts';
import type { SeededRandom } from './seeded-random.ts';

/** How long a client waits for an answer, in ms. */
export const timeoutMs = 3_000;
/** The longest that a request stays alive on its way, in ms: shorter than the fence. */
const longestWayMs = 9_000;

/** One arrival of a request that changed, or tried to change, a license. */
export type Arrival = { licenseKey: string; kind: LicenseOperationKind; seq: number };

type Work = () => { status: number; body: unknown };
/** No answer comes. */
type Loss = 'refused' | 'lost_request' | 'lost_answer' | 'late';
/** An answer comes, though not always the upstream's own. */
type Reply =
  | 'ok'
  | 'error_before'
  | 'error_after'
  | 'garbage_after'
  | 'redirect'
  | 'throttled'
  | 'unauthorized'
  | 'firewall';
type Fate = Loss | Reply;

const troubles: readonly [Fate, ...Fate[]] = [
  'refused',
  'lost_request',
  'lost_answer',
  'lost_answer',
  'late',
  'late',
  'error_before',
  'error_after',
  'garbage_after',
  'redirect',
  'throttled',
  'firewall',
];

/** A server of the specification behind a network that does to requests whatever networks do. */
export class SimulatedUpstream implements Upstream {
  readonly arrivals: Arrival[] = [];
  readonly coupons: Coupon[] = [];
  /** Everything that was sent, whether or not it got here: what, and when in epoch ms. */
  readonly asked: { what: string; at: number }[] = [];
  /** The share of requests that meet trouble. */
  trouble = 0;
  /** Nothing gets there at all: refused, or silence. */
  away: 'refused' | 'lost_request' | null = null;
  /** A share of requests is told that its secret is wrong. */
  unauthorized = 0;
  readonly #licenses = new Map<string, License>();
  readonly #clock: VirtualClock;
  readonly #random: SeededRandom;
  /** Its own, so that what waits by it goes with it. */
  readonly #forEver: AbortSignal = new AbortController().signal;
  /** The sequence number of the operation that is being sent in this lane. */
  readonly #seqOf: (licenseKey: string, kind: LicenseOperationKind) => number;

  constructor(
    clock: VirtualClock,
    random: SeededRandom,
    seqOf: (licenseKey: string, kind: LicenseOperationKind) => number,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#seqOf = seqOf;
  }

  /** Its own time, in epoch ms. */
  now(): number {
    return this.#clock.now();
  }

  add(licenseKey: string, uses: number): void {
    const createdAt = Math.floor(this.#clock.now() / 1000) * 1000;
    const rest = { productKey: 'product', buyerEmail: 'buyer@example.com', enabled: true, createdAt };
    this.#licenses.set(licenseKey, { licenseKey, uses, ...rest });
  }

  license(licenseKey: string): License {
    const license = this.#licenses.get(licenseKey);
    if (license === undefined) throw new Error(`there is no ${licenseKey}`);
    return license;
  }

  /** Another program, or the seller, changes a license. */
  changeElsewhere(licenseKey: string, trigger: LicenseOperationKind | 'refund'): void {
    this.#apply(licenseKey, trigger);
  }

  change(_: string, licenseKey: string, kind: LicenseOperationKind): Promise<Outcome<License>> {
    const seq = this.#seqOf(licenseKey, kind);
    return this.#ask(
      [kind, licenseKey],
      () => {
        this.arrivals.push({ licenseKey, kind, seq });
        this.#apply(licenseKey, kind);
        return this.#show(licenseKey);
      },
      (body) => readLicense(body, licenseKey),
    );
  }

  verify(_: string, licenseKey: string): Promise<Outcome<License>> {
    return this.#ask(
      ['verify', licenseKey],
      () => this.#show(licenseKey),
      (body) => readLicense(body, licenseKey),
    );
  }

  createCoupon(terms: CouponTerms): Promise<Outcome<Coupon>> {
    return this.#ask(
      ['create_coupon', terms.code],
      () => {
        const coupon = { ...terms, id: this.coupons.length + 1 };
        this.coupons.push(coupon);
        return { status: 200, body: { data: wireCoupon(coupon) } };
      },
      (body) => readCoupon(body, ({ code }) => code === terms.code),
    );
  }

  listCoupons({ limit, offset }: Page): Promise<Outcome<Coupon[]>> {
    return this.#ask(
      ['list_coupons', ''],
      () => ({
        status: 200,
        body: { data: { coupons: this.coupons.slice(offset, offset + limit).map(wireCoupon) } },
      }),
      readCoupons,
    );
  }

  getCoupon(id: number): Promise<Outcome<Coupon>> {
    return this.#ask(
      ['get_coupon', ''],
      () => {
        const coupon = this.coupons.find((one) => one.id === id);
        return coupon === undefined ? missing : { status: 200, body: { data: wireCoupon(coupon) } };
      },
      (body) => readCoupon(body, (coupon) => coupon.id === id),
    );
  }

  #apply(licenseKey: string, trigger: LicenseOperationKind | 'refund'): void {
    const license = this.#licenses.get(licenseKey);
    if (license !== undefined) this.#licenses.set(licenseKey, changeLicense(license, trigger));
  }

  #show(licenseKey: string): ReturnType<Work> {
    const license = this.#licenses.get(licenseKey);
    return license === undefined ? missing : { status: 200, body: { data: wireLicense(license) } };
  }

  async #ask<Value>(
    [what, hidden]: readonly [what: string, hidden: string],
    work: Work,
    read: (body: unknown) => Parsed<Value>,
  ): Promise<Outcome<Value>> {
    this.asked.push({ what, at: this.#clock.now() });
    const came = await this.#travel(work);
    const isRead = ['verify', 'list_coupons', 'get_coupon'].includes(what);
    return classify(came, { read, isRead, hidden: [hidden], now: this.#clock.now() });
  }

  #fate(): Fate {
    if (this.away !== null) return this.away;
    if (this.#random.chance(this.unauthorized)) return 'unauthorized';
    return this.#random.chance(this.trouble) ? this.#random.pick(troubles) : 'ok';
  }

  async #travel(work: Work): Promise<Exchange> {
    const fate = this.#fate();
    await this.#pass(this.#random.between(1, 300));
    switch (fate) {
      case 'refused':
        return { type: 'failed', sent: false, error: new Error('connection refused') };
      case 'lost_request':
        return this.#silence();
      case 'lost_answer':
        work();
        return this.#random.chance(0.5) ? lost('connection reset') : this.#silence();
      case 'late':
        void this.#late(work);
        return this.#silence();
      case 'ok':
      case 'error_before':
      case 'error_after':
      case 'garbage_after':
      case 'redirect':
      case 'throttled':
      case 'unauthorized':
      case 'firewall':
        return this.#answered(fate, work);
      default:
        return fate satisfies never;
    }
  }

  #answered(fate: Reply, work: Work): Exchange {
    switch (fate) {
      case 'error_before':
        return this.#answer(this.#random.pick([500, 502, 503, 504]), '<html>a bad day</html>');
      case 'error_after':
        work();
        return this.#answer(this.#random.pick([500, 502, 504]), '{"error":"a bad day"}');
      case 'garbage_after':
        work();
        return this.#answer(200, this.#random.pick(['<html>hello</html>', '{"data":', '{}', '[]', '']));
      case 'redirect':
        return this.#answer(this.#random.pick([301, 302, 307]), '', {
          location: 'https://elsewhere.example',
        });
      case 'throttled':
        return this.#answer(429, '{"error":"slow down"}', { 'retry-after': this.#retryAfter() });
      case 'unauthorized':
        return this.#answer(401, '{"error":"wrong secret"}');
      case 'firewall':
        return this.#answer(403, '<html>blocked</html>');
      case 'ok': {
        const { status, body } = work();
        return this.#answer(status, JSON.stringify(body));
      }
      default:
        return fate satisfies never;
    }
  }

  #retryAfter(): string {
    const seconds = this.#random.between(0, 8);
    return this.#random.chance(0.5)
      ? String(seconds)
      : new Date(this.#clock.now() + seconds * 1000).toUTCString();
  }

  #answer(status: number, text: string, headers: Record<string, string> = {}): Exchange {
    const date = new Date(this.#clock.now()).toUTCString();
    return { type: 'answered', status, text, headers: { date, ...headers } };
  }

  /** It arrives when nobody waits for it any more. */
  async #late(work: Work): Promise<void> {
    await this.#pass(this.#random.between(1, longestWayMs - 1_000));
    work();
  }

  async #silence(): Promise<Exchange> {
    await this.#pass(timeoutMs);
    return lost('no answer in time');
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.sleep(ms, this.#forEver);
  }
}

const missing = { status: 404, body: { error: 'there is none' } };

function lost(message: string): Exchange {
  return { type: 'failed', sent: true, error: new Error(message) };
}

function wireLicense(license: License): Record<string, unknown> {
  return {
    license_key: license.licenseKey,
    enabled: license.enabled,
    product_link: license.productKey,
    buyer_email: license.buyerEmail,
    uses: license.uses,
    date: formatDatetime(license.createdAt),
  };
}

function wireCoupon(coupon: Coupon): Record<string, unknown> {
  return {
    id: coupon.id,
    coupon_type: coupon.scope.type,
    percent_off: coupon.discount.type === 'percent' ? coupon.discount.percentOff : null,
    amount_off: coupon.discount.type === 'amount' ? coupon.discount.amountOff : null,
    code: coupon.code,
    start_date: null,
    end_date: null,
    product_key: null,
    collection_id: null,
    minimum_purchase_amount: coupon.minimumPurchaseAmount,
    usage_limit: coupon.usageLimit,
    notes: coupon.notes,
  };
}
