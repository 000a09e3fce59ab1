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

/** What a write has changed of what verifies are answered from; `credentials`: what some credential stands for. */
export type Change = { licenseKey: string } | 'credentials' | 'anything';

/** What a transaction changes of what verifies are answered from; told once it is committed. */
export interface Changes {
  add(change: Change): void;
  /** What was added since it was last taken. */
  take(): readonly Change[];
}

/** Single facts about this store: its instance id, the count of starts, the place where it was last started. */
export interface SettingReads {
  get(name: string): string | null;
}
export interface SettingTable extends SettingReads {
  set(name: string, value: string): void;
}

/** Everything that can be read of a store on this machine, outside or inside a transaction. */
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

/** The only handle that writes to a store on this machine; the writer hands it to one use case at a time. */
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

/** A value now, or a promise of it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** A table of an authority: its engine may be a server, so that every call may have to be awaited. */
export type AwaitableTable<Table> = {
  readonly [Method in keyof Table]: Table[Method] extends (...args: infer Args) => infer Value
    ? (...args: Args) => Awaitable<Value>
    : never;
};

/** What only an agent does with its tables: its upstream says how a key or a coupon is really called. */
type AgentMethod = 'respell' | 'renumberCoupon';

/** A table as an authority uses it. */
export type AuthorityTable<Table> = AwaitableTable<Omit<Table, AgentMethod>>;

/** Tables that only an agent has; its store is always on this machine and answers at once. */
type AgentTable = 'mirror' | 'snapshots' | 'operations' | 'preload' | 'trace';

/** What the tables of a store on this machine add by themselves. */
type LocalTable = 'changes';

/** Everything that an authority reads. A reader of a store on this machine is one. */
export type AuthorityReader = {
  readonly [Name in Exclude<keyof Reader, AgentTable>]: AwaitableTable<Reader[Name]>;
};

/** The only handle by which an authority writes. A transaction of a store on this machine is one. */
export type AuthorityTransaction = {
  readonly [Name in Exclude<keyof Transaction, AgentTable | LocalTable>]: AuthorityTable<Transaction[Name]>;
};
