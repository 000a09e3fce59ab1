import type { Page } from '../domain/page.ts';
import type { PreloadKey, PreloadProgress } from '../domain/agent/preload.ts';
import type { Coupon, CouponFilter } from '../domain/checkout/coupon.ts';
import type { Backlog, LocalState, Observation } from '../domain/agent/observation.ts';
import type { RecordCounts } from './status.ts';
import type { LaneName, Operation, OperationState } from '../domain/outbox/operation.ts';
import type { Traced } from '../domain/outbox/operation-trace.ts';
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

/** A coupon as an agent keeps it: `confirmedAt` (epoch ms) is null while its negative id is provisional. */
export type MirroredCoupon = { coupon: Coupon; confirmedAt: number | null };

/** The upstream's coupons as an agent last saw them, with those that the upstream has not seen yet. */
export interface MirrorReads {
  /** A provisional id keeps finding the coupon after the upstream has given the real one. */
  get(id: number): MirroredCoupon | null;
  /** The one that a customer means: what the upstream has shown comes before what it has not seen. */
  byCode(code: string): MirroredCoupon | null;
  /** One that the upstream has not seen, in any letter case. */
  provisionalByCode(code: string): MirroredCoupon | null;
  list(page: Page, filter?: CouponFilter): MirroredCoupon[];
  count(filter?: CouponFilter): number;
}
export interface MirrorTable extends MirrorReads {
  put(mirrored: MirroredCoupon): void;
  remove(id: number): void;
  /** A negative id that no coupon has had. */
  provisionalId(): number;
  /** From now on the provisional id means the real one. */
  alias(provisionalId: number, id: number): void;
}

export interface ObservationReads {
  /** Under any spelling that the upstream has answered; the observation has its own one. */
  get(licenseKey: string): Observation | null;
  /** License keys of a product, those that the upstream confirmed last before the others. */
  latest(productKey: string, limit: number): string[];
  /** Those whose `refreshAt` has come, longest due first. */
  toRefresh(now: number, limit: number): Observation[];
  /**
   * How many enabled keys were confirmed at or after each of three instants (newest first), before, and how many are
   * disabled. Where thousands were confirmed within the hour of an instant, they are divided as the hour is.
   */
  census(since: { fresh: number; stale: number; grace: number }): RecordCounts;
}
export interface ObservationTable extends ObservationReads {
  put(observation: Observation): void;
  /** Writes what callers here see of a key that is known. */
  setLocal(licenseKey: string, local: LocalState): void;
  /** Notes that a key was asked for; one that was no longer refreshed is from `refreshAt` on. */
  touch(licenseKey: string, askedAt: number, refreshAt: number): void;
  /** From now on `alias` means the key that the upstream spells `licenseKey`. */
  addAlias(alias: string, licenseKey: string): void;
  remove(licenseKey: string): void;
  renameProduct(from: string, to: string): void;
  /** Moves the time of every refresh, when `Clock.steady` has begun anew. */
  shiftRefreshes(byMs: number): void;
}

/** The license keys to be fetched ahead of any caller. */
export interface PreloadReads {
  /** Those that are left, in order. */
  left(limit: number): PreloadKey[];
  progress(): PreloadProgress;
}
export interface PreloadTable extends PreloadReads {
  /** Adds a key, also one that was fetched before. */
  add(key: PreloadKey): void;
  /** Notes that a key was fetched, or that the upstream does not know it. */
  finish(licenseKey: string, isFound: boolean): void;
  /** Puts a key that could not be asked for behind the others. */
  postpone(licenseKey: string): void;
  /** Forgets all of them. */
  clear(): void;
}

/** A lane that has something to do: the subject, and which of its lanes. */
export type LaneKey = { subject: string; lane: LaneName; productKey: string | null };

/** The reads of one lane; each costs the same however long the lane is, where nothing else is said. */
export interface LaneReads {
  /** The first operation that is unfinished and not held. */
  head(subject: string, lane: LaneName): Operation | null;
  /** Whether there is no operation that is unfinished and not held. */
  isIdle(subject: string, lane: LaneName): boolean;
  /** The last operation that is unfinished, held ones included. */
  tail(subject: string, lane: LaneName): Operation | null;
  /** Those that wait to be read back, in order. */
  uncertain(subject: string, lane: LaneName): Operation[];
  /**
   * Until when a request of the lane, also one whose operation was dropped since, may still be on its way;
   * null when that is before `now`. `asDisable`: without disables, which set a value and may be repeated.
   */
  fencedUntil(subject: string, lane: LaneName, now: number, asDisable: boolean): number | null;
  /** What the unfinished operations of a license key add up to. */
  backlog(licenseKey: string): Backlog;
  /** Of a license key, in order and as many as there are: unfinished, and disables that are conflicted or dead. */
  shown(licenseKey: string): Operation[];
  /** Those of a lane that a person must decide, in order. */
  held(subject: string, lane: LaneName): Operation[];
  /** Of a subject: conflicted and dead ones, in order. */
  dead(subject: string): Operation[];
}

export interface OperationReads extends LaneReads {
  get(id: string): Operation | null;
  /** In order; all that is not finished when no state is given. */
  list(state: OperationState | null, page: Page): Operation[];
  /** How many are in each state. */
  depth(): Record<OperationState, number>;
  /** How many are still to be delivered, or wait for a person in doubt. */
  unfinished(): number;
  /** How many are held for a person to decide. */
  heldCount(): number;
  /** How many of a product are unfinished. */
  unfinishedOf(productKey: string): number;
  /** The highest `seq` so far; 0 when there is none. */
  lastSeq(): number;
  /** Epoch ms of the oldest that is unfinished. */
  oldestAt(): number | null;
  /** Lanes whose head may take its next step, longest due first, of the products (null: of none) that are asked for. */
  due(now: number, limit: number, isAsked: (productKey: string | null) => boolean): LaneKey[];
  /** When the next lane is due after `now`; null when none is. */
  nextDueAt(now: number): number | null;
}
export interface OperationTable extends OperationReads {
  add(operation: Omit<Operation, 'seq'>): Operation;
  put(operation: Operation): void;
  /** Writes when an operation may take its next step, and why it waits: nothing else of it. */
  schedule(operation: Operation): void;
  /** Unfinished operations of a lane in order, held ones left out; as many as there are. */
  lane(subject: string, lane: LaneName): Operation[];
  withState(state: OperationState): Operation[];
  /** Those in doubt that were last sent to another upstream: neither held yet nor on their way. */
  inDoubtElsewhere(upstream: string): Operation[];
  /** Extends every fence that had not passed at `reached` to `until`: after a start its remainder is unknown. */
  extendFences(reached: number, until: number): void;
  /** Puts the operations of one spelling of a license key into the lanes of another; their heads are to be scheduled. */
  moveToSubject(from: string, to: string): void;
  renameProduct(from: string, to: string): void;
  /** Lets every lane that waits because of an outage go on at `now`. */
  endOutage(now: number): void;
  /** Ends the wait of every lane at `now`, fences excepted. */
  endBackoff(now: number): void;
  /** Moves the time of every waiting lane, when `Clock.steady` has begun anew. */
  shiftWaits(byMs: number): void;
  /** Removes at most so many that were finished before an instant; gives how many there were. */
  prune(finishedBefore: number, limit: number): number;
}

/** What happens to operations in a transaction; told once it is committed. */
export interface Trace {
  add(traced: Traced): void;
  /** What was added since it was last taken, in order. */
  take(): readonly Traced[];
}

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
  observations: ObservationReads;
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
  observations: ObservationTable;
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

/** What only an agent does with its tables: its upstream says how a key, a product or a coupon is really called. */
type AgentMethod = 'respell' | 'renameProduct' | 'renumberCoupon' | 'renameCredential';

/** A table as an authority uses it. */
export type AuthorityTable<Table> = AwaitableTable<Omit<Table, AgentMethod>>;

/** Tables that only an agent has; its store is always on this machine and answers at once. */
type AgentTable = 'mirror' | 'observations' | 'operations' | 'preload' | 'trace';

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
