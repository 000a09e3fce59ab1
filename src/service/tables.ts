import type { AttemptReads, AttemptTable, FollowReads, FollowTable } from './agent/tables.ts';
import type { MirrorReads, MirrorTable, PreloadReads, PreloadTable } from './agent/tables.ts';
import type { SnapshotReads, SnapshotTable } from './agent/tables.ts';
import type { Result } from '../domain/problem/problem.ts';
import type { OperationListReads, OperationReads, OperationTable, Trace } from './outbox/tables.ts';
import type { NewEvents } from '../domain/event.ts';
import type { Page } from '../domain/page.ts';
import type { Searched } from '../domain/search.ts';
import type { TenantFilter, Token, Tenant } from '../domain/access/principal.ts';
import type { End, ReportedEnd } from '../domain/time.ts';
import type { HistoryEntry, License, LicenseTrigger, SoldLicense } from '../domain/license.ts';
import type { Account, Collection, Product, Purchase, PurchaseWithLicense } from '../domain/catalogue.ts';
import type { Coupon, CouponFilter, CouponTerms } from '../domain/checkout/coupon.ts';
import type { Redemption } from '../domain/checkout/quote.ts';

/*
 * The tables, as the use cases see them. Undefined members of a filter do not filter. `after` lists the rows after an id,
 * in the order of ids. `prune` removes up to `limit` rows from before an instant, and returns how many.
 */

/** Which cached responses a write invalidates. */
export type Change = { licenseKey: string } | 'credentials' | 'anything';

/** The changes of a transaction, announced after the commit. */
export interface Changes {
  add(change: Change): void;
  /** The changes since the last call. */
  take(): readonly Change[];
}

/** Single values of this store, e.g. its instance id and the number of starts. */
export interface SettingReads {
  get(name: string): string | null;
  /** A random id of the history of this store; null before the first start. */
  epoch(): string | null;
}
export interface SettingTable extends SettingReads {
  set(name: string, value: string): void;
}

/** The reads of the core. */
export interface CoreReader {
  accounts: AccountReads;
  products: ProductReads;
  collections: CollectionReads;
  purchases: PurchaseReads;
  licenses: LicenseReads;
  coupons: CouponReads;
  mirror: MirrorReads;
  redemptions: RedemptionReads;
  tokens: TokenReads;
  snapshots: SnapshotReads;
  preload: PreloadReads;
  operations: OperationReads;
  follows: FollowReads;
  activationAttempts: AttemptReads;
  idempotency: IdempotencyReads;
  settings: SettingReads;
  audit: AuditReads;
  history: HistoryReads;
  oldCredentials: OldCredentialReads;
}

/** All reads of a local store, outside or inside a transaction. A feature adds its own tables. */
export interface Reader extends CoreReader {}

/** The tables of the core. */
export interface CoreTransaction extends Reader {
  accounts: AccountTable;
  products: ProductTable;
  collections: CollectionTable;
  purchases: PurchaseTable;
  licenses: LicenseTable;
  coupons: CouponTable;
  mirror: MirrorTable;
  redemptions: RedemptionTable;
  tokens: TokenTable;
  snapshots: SnapshotTable;
  preload: PreloadTable;
  operations: OperationTable;
  follows: FollowTable;
  activationAttempts: AttemptTable;
  trace: Trace;
  changes: Changes;
  idempotency: IdempotencyTable;
  settings: SettingTable;
  audit: AuditTable;
  history: HistoryTable;
  oldCredentials: OldCredentialTable;
  events: NewEvents;
  attempt: Attempt;
}

/** The only handle that writes to a local store: one use case at a time has it. A feature adds its own tables. */
export interface Transaction extends CoreTransaction {}

/** Does a part of a use case, and undoes it if it is refused. Parts do not contain others, and change no settings. */
export type Attempt = <Value>(work: () => Promise<Result<Value>>) => Promise<Result<Value>>;

export type Awaitable<Value> = Value | Promise<Value>;

/** A table of an authority: calls may be asynchronous, because the database may be a server. */
export type AwaitableTable<Table> = {
  readonly [Method in keyof Table]: Table[Method] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Awaitable<Value>
    : never;
};

export type AuthorityTable<Table> = AwaitableTable<Omit<Table, LocalMethod>>;
/** Only a local store has these: others have no upstream that gives keys, counts and ids, and maintain their indexes. */
type LocalMethod = 'changeKey' | 'forgetRequests' | 'renumberCoupon' | 'indexForSearch';

/** The tables of features that only an agent or a holder has. A feature adds the names of its own. */
export interface AgentTablesOfFeatures {}

/** Tables that only an agent or a holder has; their stores are always local and synchronous. */
type AgentTable =
  | 'mirror'
  | 'snapshots'
  | 'operations'
  | 'follows'
  | 'activationAttempts'
  | 'preload'
  | 'trace'
  | keyof AgentTablesOfFeatures;

type LocalTable = 'changes' | 'events' | 'attempt';

/** All reads of an authority. A `Reader` is also an `AuthorityReader`. */
export type AuthorityReader = {
  readonly [Name in Exclude<keyof Reader, AgentTable>]: AwaitableTable<Reader[Name]>;
};

/** The only handle that writes to an authority's store. A `Transaction` is also an `AuthorityTransaction`. */
export type AuthorityTransaction = {
  readonly [Name in Exclude<keyof Transaction, AgentTable | LocalTable>]: AuthorityTable<Transaction[Name]>;
} & { readonly events: NewEvents; readonly attempt: Attempt };

export interface TokenReads {
  get(tokenId: string): Token | null;
  byDigest(digest: string): Token | null;
  list(filter: TenantFilter, page: Page): Token[];
  count(filter: TenantFilter): number;
}
export interface TokenTable extends TokenReads {
  add(token: Token, digest: string): void;
  digest(tokenId: string): string | null;
  setDigest(tokenId: string, digest: string): void;
  /** Never moves `lastUsedAt` back. */
  setLastUsed(tokenId: string, at: number): void;
  remove(tokenId: string): void;
}

/** `id`: the id of an account or a token, or the key of a product. */
export type CredentialOwner = { kind: 'api_key' | 'product_secret' | 'token'; id: string };
/** A replaced credential that stays valid until an instant (epoch ms). */
export type OldCredential = CredentialOwner & { until: number };
export interface OldCredentialReads {
  /** Also returns an expired credential until it is pruned. */
  byDigest(kind: CredentialOwner['kind'], digest: string): OldCredential | null;
}
export interface OldCredentialTable extends OldCredentialReads {
  /** Replaces the old credential that the owner has. */
  put(old: OldCredential, digest: string): void;
  remove(owner: CredentialOwner): void;
  /** Removes credentials that ended at this instant or earlier. */
  prune(before: number): void;
}

export type StoredResponse = { fingerprint: string; value: unknown };
export interface IdempotencyReads {
  get(credential: string, key: string): StoredResponse | null;
  /** How many responses are stored for requests of a credential that changed nothing. */
  unchangedCount(credential: string): number;
}
export interface IdempotencyTable extends IdempotencyReads {
  put(credential: string, key: string, record: StoredResponse & { until: number; unchanged: boolean }): void;
  /** Replaces a response, but not its `unchanged`. */
  replace(credential: string, key: string, record: StoredResponse & { until: number }): void;
  /** Keeps a response until an instant, if that is later by at least `byMs`. */
  renew(credential: string, key: string, until: number, byMs: number): void;
  remove(credential: string, key: string): void;
  /** Up to `limit` responses that are kept for longer are kept until an instant; returns how many. */
  keepUntilAtMost(until: number, limit: number): number;
  /** Removes up to `limit` responses that are kept until before an instant; returns how many. */
  prune(before: number, limit: number): number;
}

/** Audit entries are kept for ever. */
export type AuditEntry = { at: number; actor: string; act: string; subject: string; detail: string };
export type RecordedAuditEntry = AuditEntry & { id: number };
export type AuditFilter = {
  /** Epoch ms, included. */
  since?: number | undefined;
  /** Epoch ms, excluded. */
  until?: number | undefined;
  actor?: string | undefined;
  act?: string | undefined;
  subject?: string | undefined;
};
export interface AuditReads {
  get(id: number): RecordedAuditEntry | null;
  /** Latest first. */
  list(filter: AuditFilter, page: Page): RecordedAuditEntry[];
  count(filter: AuditFilter): number;
}
export interface AuditTable extends AuditReads {
  add(entry: AuditEntry): void;
}

/** `since`: epoch ms, included; undefined: all changes. */
export type HistoryPage = Page & { since?: number | undefined };
/** `number` counts the changes of the key. */
export type ListedChange = HistoryEntry & { number: number };
export interface HistoryReads {
  /** Latest first. */
  list(licenseKey: string, page: HistoryPage): ListedChange[];
  count(licenseKey: string, since?: number): number;
}
export interface HistoryTable extends HistoryReads {
  /** Adds a change, and removes the oldest changes of the key above `history.keep`. */
  add(change: HistoryEntry): void;
  /** Moves the changes from one spelling of a license key to another. */
  changeKey(from: string, to: string): void;
  prune(before: number, limit: number): number;
}

export interface AccountReads {
  get(accountId: string): Account | null;
  byKeyDigest(digest: string): Account | null;
  list(filter: TenantFilter, page: Page): Account[];
  count(filter: TenantFilter): number;
}
export interface AccountTable extends AccountReads {
  add(account: Account, keyDigest: string): void;
  keyDigest(accountId: string): string | null;
  setKeyDigest(accountId: string, digest: string): void;
}

export type ProductFilter = TenantFilter & { archived?: boolean | undefined };
export interface ProductReads {
  get(productKey: string): Product | null;
  bySecretDigest(digest: string): Product | null;
  list(filter: ProductFilter, page: Page): Product[];
  count(filter: ProductFilter): number;
}
export interface ProductTable extends ProductReads {
  add(product: Product, secretDigest: string): void;
  secretDigest(productKey: string): string | null;
  setSecretDigest(productKey: string, digest: string): void;
  put(product: Product): void;
  /** The last license key that has the grace of its product; null: all licenses have it. */
  setGracedTo(productKey: string, licenseKey: string | null): void;
  /** A product whose licenses do not all have its grace, in ms. Locks the product. */
  halfGraced(): { productKey: string; graceMs: number; gracedTo: string } | null;
}

export interface CollectionReads {
  get(collectionId: string): Collection | null;
  list(filter: TenantFilter, page: Page): Collection[];
  count(filter: TenantFilter): number;
}
export interface CollectionTable extends CollectionReads {
  add(collection: Collection): void;
  put(collection: Collection): void;
}

/** `since` and `until`: epoch ms, both included. */
export type PurchaseFilter = TenantFilter &
  Searched & {
    productKey?: string | undefined;
    licenseKey?: string | undefined;
    /** Ignores case. */
    buyerEmail?: string | undefined;
    since?: number | undefined;
    until?: number | undefined;
    refunded?: boolean | undefined;
  };
export interface PurchaseReads {
  get(purchaseId: string): Purchase | null;
  after(filter: ExportFilter, purchaseId: string, limit: number): PurchaseWithLicense[];
  /** Latest first. */
  list(filter: PurchaseFilter, page: Page): PurchaseWithLicense[];
  count(filter: PurchaseFilter): number;
}
export interface PurchaseTable extends PurchaseReads {
  add(purchase: Purchase): void;
  setRefunded(purchase: Pick<Purchase, 'purchaseId' | 'refundedAt'>): void;
}

export type LicenseFilter = Omit<PurchaseFilter, 'since' | 'until' | 'refunded'> & {
  enabled?: boolean | undefined;
};
export interface LicenseReads {
  get(licenseKey: string): License | null;
  after(filter: ExportFilter, licenseKey: string, limit: number): License[];
  list(filter: LicenseFilter, page: Page): SoldLicense[];
  count(filter: LicenseFilter): number;
  /** Enabled licenses that end after another end and until an instant: by their date, or also after their grace. */
  ending(which: 'date' | 'grace', after: ReportedEnd, until: number, limit: number): End[];
}
/** `historyEntry`: the time and the credential of the entry, with epoch ms; null: no history. */
export type LicenseChange = {
  tenant: Tenant;
  licenseKey: string;
  trigger: Exclude<LicenseTrigger, 'refund'>;
  historyEntry: { at: number; credential: string } | null;
};
export interface LicenseTable extends LicenseReads {
  /** Returns false if the key is taken. */
  add(license: License): boolean;
  /** Writes no index, because no indexed column changes. A refund also counts as a change of a disabled license. */
  setState(license: Pick<License, 'licenseKey' | 'uses' | 'enabled'>, isRefund: boolean): void;
  /** Stores the terms of a license, and counts as a change of it. */
  setTerms(license: Pick<License, 'licenseKey' | 'expiresAt' | 'graceUntil' | 'usesLimit' | 'terms'>): void;
  /** Sets how long a license is answered as valid after its end, in ms, and counts as a change of it. */
  setGrace(licenseKey: string, graceMs: number): void;
  /** Whether a license is disabled since after a revision. Locks the license. */
  isRevokedSince(licenseKey: string, revision: number): boolean;
  /** Makes the next licenses, up to `limit`, faster to find; returns how many are left. */
  indexForSearch(limit: number): number;
  /** A restored store begins a new history: no license was disabled in it yet. */
  clearDisabledRevisions(): void;
  /** Changes a license and adds the change to its history, in one statement; null if the tenant has no such license. */
  change(change: LicenseChange): { before: License; after: License } | null;
}

export type ExportFilter = TenantFilter & { productKey?: string | undefined };

export interface CouponReads {
  after(accountId: string, id: number, limit: number): Coupon[];
  get(accountId: string, id: number): Coupon | null;
  byCode(accountId: string, code: string): Coupon | null;
  list(accountId: string, page: Page, filter?: CouponFilter): Coupon[];
  count(accountId: string, filter?: CouponFilter): number;
}
export interface CouponTable extends CouponReads {
  /** Without `id`, generates one. */
  add(accountId: string, terms: CouponTerms, id?: number | null): Coupon;
  /** Whether any account has a coupon with this id. */
  isTaken(id: number): boolean;
  put(coupon: Coupon): void;
  remove(id: number): void;
}

/** `id`: the sort key of lists. */
export type ListedRedemption = Redemption & { id: number };

/** The coupons that orders have used. On an agent, all belong to the default account. */
export interface RedemptionReads {
  get(accountId: string, order: string): Redemption | null;
  /** The cost does not depend on the count. */
  countOf(accountId: string, couponId: number): number;
  /** Oldest first. */
  listOf(accountId: string, couponId: number, page: Page): ListedRedemption[];
  /** Newest first. */
  ordersOf(accountId: string, couponId: number, limit: number): string[];
}
export interface RedemptionTable extends RedemptionReads {
  add(accountId: string, redemption: Redemption): void;
  /** Returns false if there was none. */
  remove(accountId: string, order: string): boolean;
  renumberCoupon(accountId: string, from: number, to: number): void;
}

type Listed = 'list' | 'count';

/** The tables of features with lists. A feature adds the names of its own. */
export interface ListsOfFeatures {}

/**
 * The lists of an authority and their lengths. Large lists take long, so a local store reads them in another thread. A
 * reader has the same methods, and runs them in the caller's thread.
 */
export type Lists = {
  readonly [
    Name in
      | 'accounts'
      | 'products'
      | 'collections'
      | 'purchases'
      | 'licenses'
      | 'coupons'
      | 'tokens'
      | 'audit'
      | keyof ListsOfFeatures
  ]: Pick<AuthorityReader[Name], Listed>;
} & { readonly redemptions: Pick<AuthorityReader['redemptions'], 'listOf'> };

export type OperationLists = AwaitableTable<OperationListReads>;

/** The lists of a local store, which may be an agent's. */
export type LocalLists = Lists & {
  readonly mirror: AwaitableTable<Pick<MirrorReads, Listed>>;
  readonly snapshots: AwaitableTable<Pick<SnapshotReads, Listed>>;
  readonly operations: OperationLists;
};
