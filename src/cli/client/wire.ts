import { z } from 'zod';

/*
 * The daemon's answers, as far as they are shown in words (outside contract, sections 2 to 5).
 * What else is in an answer is left alone: `--json` shows it whole.
 */

const text = z.string();
const integer = z.int();

/** `listen.json`. */
export interface Listeners {
  readonly tcp: string | null;
  readonly socket: string | null;
}

export const listeners: z.ZodType<Listeners> = z.object({ tcp: text.nullable(), socket: text.nullable() });

/** An error's body (RFC 9457). */
export interface Problem {
  readonly title: string;
  readonly code: string;
  readonly detail?: string | undefined;
  readonly errors?: readonly { readonly parameter: string; readonly detail: string }[] | undefined;
}

export const problem: z.ZodType<Problem> = z.object({
  title: text,
  code: text,
  detail: text.optional(),
  errors: z.array(z.object({ parameter: text, detail: text })).optional(),
});

/** Specification 2.2. */
export interface License {
  readonly license_key: string;
  readonly enabled: boolean;
  readonly product_link: string;
  readonly buyer_email: string;
  readonly uses: number;
  readonly date: string;
}

export const license: z.ZodType<License> = z.object({
  license_key: text,
  enabled: z.boolean(),
  product_link: text,
  buyer_email: text,
  uses: integer,
  date: text,
});

export const licenseList: z.ZodType<{ readonly licenses: readonly License[] }> = z.object({
  licenses: z.array(license),
});

/** Specification 2.1. */
export interface Coupon {
  readonly id: number;
  readonly coupon_type: string;
  readonly percent_off: number | null;
  readonly amount_off: number | null;
  readonly code: string;
  readonly start_date: string | null;
  readonly end_date: string | null;
  readonly product_key: string | null;
  readonly collection_id: string | null;
  readonly minimum_purchase_amount: number | null;
  readonly usage_limit: number | null;
  readonly notes: string | null;
}

export const coupon: z.ZodType<Coupon> = z.object({
  id: integer,
  coupon_type: text,
  percent_off: z.number().nullable(),
  amount_off: integer.nullable(),
  code: text,
  start_date: text.nullable(),
  end_date: text.nullable(),
  product_key: text.nullable(),
  collection_id: text.nullable(),
  minimum_purchase_amount: integer.nullable(),
  usage_limit: integer.nullable(),
  notes: text.nullable(),
});

export const couponList: z.ZodType<{ readonly coupons: readonly Coupon[] }> = z.object({
  coupons: z.array(coupon),
});

export interface Account {
  readonly account_id: string;
  readonly name: string;
  /** Only when it was just made. */
  readonly api_key?: string | undefined;
}

export const account: z.ZodType<Account> = z.object({
  account_id: text,
  name: text,
  api_key: text.optional(),
});

export const accountList: z.ZodType<{ readonly accounts: readonly Account[] }> = z.object({
  accounts: z.array(account),
});

export interface Product {
  readonly product_key: string;
  readonly name: string;
  readonly recurring: boolean;
  /** Only when it was just made. */
  readonly secret?: string | undefined;
}

export const product: z.ZodType<Product> = z.object({
  product_key: text,
  name: text,
  recurring: z.boolean(),
  secret: text.optional(),
});

export const productList: z.ZodType<{ readonly products: readonly Product[] }> = z.object({
  products: z.array(product),
});

export interface Token {
  readonly token_id: string;
  /** Only when it was just issued. */
  readonly token?: string | undefined;
  readonly scopes: readonly string[];
  readonly product_key: string | null;
  readonly account_id: string | null;
  readonly label: string | null;
}

export const token: z.ZodType<Token> = z.object({
  token_id: text,
  token: text.optional(),
  scopes: z.array(text),
  product_key: text.nullable(),
  account_id: text.nullable(),
  label: text.nullable(),
});

export const tokenList: z.ZodType<{ readonly tokens: readonly Token[] }> = z.object({
  tokens: z.array(token),
});

export interface Collection {
  readonly collection_id: string;
  readonly name: string;
  readonly product_keys: readonly string[];
}

export const collection: z.ZodType<Collection> = z.object({
  collection_id: text,
  name: text,
  product_keys: z.array(text),
});

export interface Purchase {
  readonly purchase_id: string;
  readonly refunded: boolean;
  readonly license: License;
}

export const purchase: z.ZodType<Purchase> = z.object({ purchase_id: text, refunded: z.boolean(), license });

/** An entry of the outbox. */
export interface Operation {
  readonly id: string;
  readonly kind: string;
  readonly license_key: string | null;
  readonly state: string;
  readonly held: boolean;
  readonly attempts: number;
  readonly base_uses: number | null;
  readonly created_at: string;
  readonly next_at: string | null;
  readonly last_error: string | null;
}

export const operation: z.ZodType<Operation> = z.object({
  id: text,
  kind: text,
  license_key: text.nullable(),
  state: text,
  held: z.boolean(),
  attempts: integer,
  base_uses: integer.nullable(),
  created_at: text,
  next_at: text.nullable(),
  last_error: text.nullable(),
});

export const operationList: z.ZodType<{ readonly operations: readonly Operation[] }> = z.object({
  operations: z.array(operation),
});

/** `/readyz`. */
export interface Readiness {
  readonly status: string;
  readonly reasons: readonly string[];
}

export const readiness: z.ZodType<Readiness> = z.object({ status: text, reasons: z.array(text) });

/** `/statusz`. */
export interface Status {
  readonly role: string;
  readonly version: string;
  readonly uptime_s: number;
  readonly listeners: Listeners;
  readonly upstream: UpstreamStatus | null;
  readonly outbox: OutboxStatus | null;
  readonly records: Readonly<Record<string, number>>;
  readonly clock: { readonly suspect: boolean };
}

export interface UpstreamStatus {
  readonly state: string;
  readonly since: string;
  readonly protocol: string;
  readonly breaker: string;
  readonly last_success_at: string | null;
  readonly last_error: string | null;
  readonly paused_products: readonly string[];
  readonly coupons_paused: boolean;
}

export interface OutboxStatus {
  readonly pending: number;
  readonly in_flight: number;
  readonly uncertain: number;
  readonly held: number;
  readonly inferred: number;
  readonly conflicted: number;
  readonly dead: number;
  readonly oldest_age_s: number | null;
}

const upstreamStatus: z.ZodType<UpstreamStatus> = z.object({
  state: text,
  since: text,
  protocol: text,
  breaker: text,
  last_success_at: text.nullable(),
  last_error: text.nullable(),
  paused_products: z.array(text),
  coupons_paused: z.boolean(),
});

const outboxStatus: z.ZodType<OutboxStatus> = z.object({
  pending: integer,
  in_flight: integer,
  uncertain: integer,
  held: integer,
  inferred: integer,
  conflicted: integer,
  dead: integer,
  oldest_age_s: z.number().nullable(),
});

/** What `sync …` answer. */
export interface SyncStatus {
  readonly upstream: UpstreamStatus;
  readonly outbox: OutboxStatus;
}

export const syncStatus: z.ZodType<SyncStatus> = z.object({ upstream: upstreamStatus, outbox: outboxStatus });

export const status: z.ZodType<Status> = z.object({
  role: text,
  version: text,
  uptime_s: z.number(),
  listeners,
  upstream: upstreamStatus.nullable(),
  outbox: outboxStatus.nullable(),
  records: z.record(text, integer),
  clock: z.object({ suspect: z.boolean() }),
});
