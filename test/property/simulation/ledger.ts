import type { Dispatcher } from 'undici';

/** What can happen to a license in the upstream's books; a refund is the seller's. */
export type LedgerEvent = 'usage' | 'decrease' | 'enable' | 'disable' | 'refund';

/** One line of the upstream's books: an event as it arrived, and what the license was after it. */
export type LedgerEntry = {
  key: string;
  event: LedgerEvent;
  /** The operation that the request carried; null: another program's, or the seller's. */
  operation: string | null;
  /** Its place in the agent's outbox, and which of the agent's stores that was (a restore makes another). */
  seq: number;
  incarnation: number;
  /** Whether it changed anything. */
  moved: boolean;
  /** How many uses it counts. */
  amount: number;
  uses: number;
  enabled: boolean;
};

/** A license as the specification shows it (2.2). */
type LicenseRecord = {
  license_key: string;
  enabled: boolean;
  product_link: string;
  buyer_email: string;
  uses: number;
  date: string;
};

type CouponRecord = { id: number; code: string } & Record<string, string | number | null>;

export type Reply = { status: number; body: Record<string, unknown> };

/** The sender of a request, which only the simulation knows. */
export type Origin = Pick<LedgerEntry, 'operation' | 'seq' | 'incarnation'>;

export const unknownOrigin: Origin = { operation: null, seq: 0, incarnation: 0 };

/** A request of the specification, as it is read from what the client sends. */
export type ParsedRequest = {
  what: LedgerEvent | 'verify' | 'create_coupon' | 'list_coupons' | 'get_coupon';
  /** The license key or the coupon's code, as it was sent. */
  subject: string;
  parameters: URLSearchParams;
  secret: string | null;
  apiKey: string | null;
};

const licenseRoute = /^\/api\/v2\/license\/(verify|usage|decrease|enable|disable)$/;
const couponRoute = /^\/api\/v2\/coupons(?:\/(-?\d+))?$/;

/** Reads a request; throws on one that the specification does not know. */
export function readRequest({ method, path, headers, body }: Dispatcher.DispatchOptions): ParsedRequest {
  const target = new URL(path, 'http://upstream.invalid');
  const sent = headers as Record<string, string>;
  const shared = {
    parameters:
      method === 'GET' ? target.searchParams : new URLSearchParams(typeof body === 'string' ? body : ''),
    secret: sent['product-secret-key'] ?? null,
    apiKey: sent['service-api-key'] ?? null,
  };
  const license = licenseRoute.exec(target.pathname)?.[1];
  if (license !== undefined && (license === 'verify') === (method === 'GET')) {
    const what = license as LedgerEvent | 'verify';
    return { ...shared, what, subject: shared.parameters.get('license_key') ?? '' };
  }
  const coupon = couponRoute.exec(target.pathname);
  if (coupon !== null && method === 'POST') {
    return { ...shared, what: 'create_coupon', subject: shared.parameters.get('code') ?? '' };
  }
  if (coupon !== null && method === 'GET') {
    const what = coupon[1] === undefined ? 'list_coupons' : 'get_coupon';
    return { ...shared, what, subject: coupon[1] ?? '' };
  }
  throw new Error(`the client sent ${method} ${path}`);
}

/**
 * The upstream: a server of the specification with its own rules and its own words. Nothing of the product
 * is used here, so that a fault of the product cannot excuse itself.
 */
export class Ledger {
  readonly entries: LedgerEntry[] = [];
  /** By product secret: the product's key. */
  readonly products: Map<string, string>;
  apiKey = 'api-key';
  /** The answer to a use of a disabled key, which is not counted then; null: the use is counted. */
  disabled: Reply | null = null;
  /** Keys that are only ever disabled, and by everybody: they do not come back, and count nothing. */
  readonly oneWay: Set<string> = new Set();
  /** A key is found in any letter case. */
  foldsCase = false;
  readonly coupons: CouponRecord[] = [];
  /** The operations that created a coupon, once for each time. */
  readonly creations: string[] = [];
  readonly #licenses = new Map<string, LicenseRecord>();
  readonly #removed = new Map<string, LicenseRecord>();
  #lastCouponId = 0;

  constructor(products: ReadonlyMap<string, string>) {
    this.products = new Map(products);
  }

  add(key: string, product: string, uses: number): void {
    const rest = { product_link: product, buyer_email: 'buyer@example.com', date: '2025-12-01T00:00:00Z' };
    this.#licenses.set(this.fold(key), { license_key: key, enabled: true, uses, ...rest });
  }

  /** How a key is filed. */
  fold(key: string): string {
    return this.foldsCase ? key.toLowerCase() : key;
  }

  /** What is on file; throws when nothing is. */
  license(key: string): Readonly<LicenseRecord> {
    const found = this.#licenses.get(this.fold(key)) ?? this.#removed.get(this.fold(key));
    if (found === undefined) throw new Error(`there is no ${key}`);
    return found;
  }

  /** The seller takes a license off the books, or puts it back. */
  setRemoved(key: string, isRemoved: boolean): void {
    if (this.oneWay.has(key)) return;
    const [from, to] = isRemoved ? [this.#licenses, this.#removed] : [this.#removed, this.#licenses];
    const record = from.get(this.fold(key));
    if (record === undefined) return;
    from.delete(this.fold(key));
    to.set(this.fold(key), record);
  }

  /** Another program, or the seller, changes a license. */
  changeElsewhere(key: string, event: LedgerEvent): void {
    if (this.oneWay.has(key) && event !== 'refund') return;
    const record = this.#licenses.get(this.fold(key));
    if (record !== undefined) this.#enter(record, event, unknownOrigin);
  }

  /** The seller creates a coupon, or removes one that this agent did not create. */
  createCouponElsewhere(code: string): void {
    this.#addCoupon(code, new URLSearchParams({ coupon_type: 'multi', percent_off: '5' }));
  }

  removeCouponElsewhere(isTheirs: (code: string) => boolean): void {
    const index = this.coupons.findIndex(({ code }) => isTheirs(code));
    if (index >= 0) this.coupons.splice(index, 1);
  }

  /** Does what a request asks for, and answers. */
  handle(parsed: ParsedRequest, origin: Origin): Reply {
    const { what } = parsed;
    if (what === 'create_coupon' || what === 'list_coupons' || what === 'get_coupon') {
      return parsed.apiKey === this.apiKey ? this.#handleCoupons(parsed, what, origin) : forbidden;
    }
    const product = this.products.get(parsed.secret ?? '');
    if (product === undefined) return forbidden;
    const record = this.#licenses.get(this.fold(parsed.subject));
    if (record === undefined || record.product_link !== product) return missing;
    if (what === 'usage' && !record.enabled && this.disabled !== null) return this.disabled;
    const amount = Number(parsed.parameters.get('amount') ?? 1);
    if (what !== 'verify') this.#enter(record, what, origin, amount);
    return { status: 200, body: { data: { ...record } } };
  }

  #enter(record: LicenseRecord, event: LedgerEvent, origin: Origin, amount = 1): void {
    const { uses, enabled } = record;
    if (event === 'usage') record.uses += amount;
    else if (event === 'decrease') record.uses = Math.max(0, record.uses - 1);
    else record.enabled = event === 'enable';
    const moved = record.uses !== uses || record.enabled !== enabled;
    const key = this.fold(record.license_key);
    this.entries.push({ key, event, ...origin, moved, amount, uses: record.uses, enabled: record.enabled });
  }

  #handleCoupons(
    { parameters, subject }: ParsedRequest,
    what: 'create_coupon' | 'list_coupons' | 'get_coupon',
    { operation }: Origin,
  ): Reply {
    if (what === 'list_coupons') {
      const offset = Number(parameters.get('offset') ?? 0);
      const limit = Number(parameters.get('limit') ?? 10);
      return { status: 200, body: { data: { coupons: this.coupons.slice(offset, offset + limit) } } };
    }
    if (what === 'get_coupon') {
      const coupon = this.coupons.find(({ id }) => id === Number(subject));
      return coupon === undefined ? missing : { status: 200, body: { data: coupon } };
    }
    if (operation !== null) this.creations.push(operation);
    return { status: 200, body: { data: this.#addCoupon(subject, parameters) } };
  }

  #addCoupon(code: string, parameters: URLSearchParams): CouponRecord {
    this.#lastCouponId += 1;
    const percent = parameters.get('percent_off');
    const coupon = {
      id: this.#lastCouponId,
      coupon_type: parameters.get('coupon_type'),
      percent_off: percent === null ? null : Number(percent),
      amount_off: null,
      code,
      start_date: null,
      end_date: null,
      product_key: null,
      collection_id: null,
      minimum_purchase_amount: null,
      usage_limit: null,
      notes: null,
    };
    this.coupons.push(coupon);
    return coupon;
  }
}

export const missing: Reply = { status: 404, body: { error: 'there is none' } };
const forbidden: Reply = { status: 401, body: { error: 'who are you?' } };
