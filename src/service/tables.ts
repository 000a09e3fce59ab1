import type {
  MirrorReads,
  MirrorTable,
  SnapshotReads,
  SnapshotTable,
  PreloadReads,
  PreloadTable,
} from './agent/tables.ts';
import type {
  AuditReads,
  AuditTable,
  HistoryReads,
  HistoryTable,
  OldCredentialReads,
  OldCredentialTable,
  IdempotencyReads,
  IdempotencyTable,
  TokenReads,
  TokenTable,
} from './access/tables.ts';
import type {
  AccountReads,
  AccountTable,
  CollectionReads,
  CollectionTable,
  CouponReads,
  CouponTable,
  LicenseReads,
  LicenseTable,
  ProductReads,
  ProductTable,
  PurchaseReads,
  PurchaseTable,
} from './authority/tables.ts';
import type { RedemptionReads, RedemptionTable } from './checkout/tables.ts';
import type { OperationReads, OperationTable, Trace } from './outbox/tables.ts';

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
}
export interface SettingTable extends SettingReads {
  set(name: string, value: string): void;
}

/** All reads of a local store, outside or inside a transaction. */
export interface Reader {
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
  idempotency: IdempotencyReads;
  settings: SettingReads;
  audit: AuditReads;
  history: HistoryReads;
  oldCredentials: OldCredentialReads;
}

/** The only handle that writes to a local store; the writer gives it to one use case at a time. */
export interface Transaction extends Reader {
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
  trace: Trace;
  changes: Changes;
  idempotency: IdempotencyTable;
  settings: SettingTable;
  audit: AuditTable;
  history: HistoryTable;
  oldCredentials: OldCredentialTable;
}

export type Awaitable<Value> = Value | Promise<Value>;

/** A table of an authority: calls may be asynchronous, because the database may be a server. */
export type AwaitableTable<Table> = {
  readonly [Method in keyof Table]: Table[Method] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Awaitable<Value>
    : never;
};

/** Only an agent needs these: its upstream decides about the spelling of keys and the ids of coupons. */
type AgentMethod = 'changeKey' | 'renumberCoupon';

export type AuthorityTable<Table> = AwaitableTable<Omit<Table, AgentMethod>>;

/** Tables that only an agent has; its store is always local and synchronous. */
type AgentTable = 'mirror' | 'snapshots' | 'operations' | 'preload' | 'trace';

type LocalTable = 'changes';

/** All reads of an authority. A `Reader` is also an `AuthorityReader`. */
export type AuthorityReader = {
  readonly [Name in Exclude<keyof Reader, AgentTable>]: AwaitableTable<Reader[Name]>;
};

/** The only handle that writes to an authority's store. A `Transaction` is also an `AuthorityTransaction`. */
export type AuthorityTransaction = {
  readonly [Name in Exclude<keyof Transaction, AgentTable | LocalTable>]: AuthorityTable<Transaction[Name]>;
};
