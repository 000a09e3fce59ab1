/** A local change to deliver upward. */
export type OperationKind = 'usage' | 'decrease' | 'disable' | 'enable' | 'create_coupon';

/** The kinds that are sent about a license key. */
export type LicenseOperationKind = Extract<OperationKind, 'usage' | 'decrease' | 'disable' | 'enable'>;

/** First-in-first-out queues: a key's counter, a key's state, a coupon code. */
export type LaneName = 'counter' | 'state' | 'coupon';

export const laneOf: Record<OperationKind, LaneName> = {
  usage: 'counter',
  decrease: 'counter',
  disable: 'state',
  enable: 'state',
  create_coupon: 'coupon',
};

/** Why an operation is dead: the upstream refused it, or does not know the license key any more. */
export type DeathCause = 'refused' | 'missing';

/** Where an operation stands. Times are epoch ms. `doubtful`: it may have been applied, and no read can rule that out. */
export type OperationProgress =
  | { state: 'pending'; doubtful: boolean }
  /** Committed as such before the first byte left. `baseUses` is the count it was sent on. */
  | { state: 'in_flight'; doubtful: boolean; baseUses: number | null; sentAt: number }
  /** `held`: reading cannot decide it, a person must. Otherwise it waits for its fence, and is read back. */
  | { state: 'uncertain'; doubtful: boolean; baseUses: number | null; held: boolean }
  | { state: 'delivered' | 'inferred' | 'cancelled' | 'dropped'; finishedAt: number }
  /** Not applied; `lastError` says why. */
  | { state: 'dead'; cause: DeathCause }
  /** Not applied, because the upstream moved on. */
  | { state: 'conflicted' };

export type OperationState = OperationProgress['state'];

export const operationStates: readonly OperationState[] = [
  'pending',
  'in_flight',
  'uncertain',
  'delivered',
  'inferred',
  'conflicted',
  'dead',
  'cancelled',
  'dropped',
];

/** The states in which an operation is still to be delivered, or waits for a person in `uncertain`. */
export type UnfinishedState = Extract<OperationState, 'pending' | 'in_flight' | 'uncertain'>;

/** What an operation is, apart from where it stands. */
export type OperationIdentity = {
  /** UUIDv7, global, kept across restores. */
  id: string;
  /** Local order of arrival. */
  seq: number;
  kind: OperationKind;
  /** The license key or the coupon code that it is about. */
  subject: string;
  /** The id of the product (`Product`) under whose secret it is sent; null for coupons. */
  productKey: string | null;
  createdAt: number;
  /** Under which credential it was asked for (`Principal.credential`); null: before this was kept. */
  credential: string | null;
  /** By which request it was asked for, by the request's id. */
  requestId: string | null;
  /** Times it was sent. */
  attempts: number;
  /** Times in a row that the way up failed: the exponent of the backoff. */
  failures: number;
  /** When the head of its lane may take its next step; null for those behind the head, held or finished. */
  nextAt: number | null;
  /** `nextAt` was set by an outage: the first success after it clears the wait. */
  outage: boolean;
  /** Until when an attempt of it may still be on its way (`Clock.steady`); null when there was no such attempt. */
  fencedUntil: number | null;
  /** The upstream to which it was first sent: only that one can settle its doubt. Null before. */
  upstream: string | null;
  lastError: string | null;
  /** Of an enable: what callers here saw when it was asked for. */
  seenEnabled: boolean | null;
  /** What is sent, where the kind and subject do not say it all. */
  payload: string | null;
};

export type Operation = OperationIdentity & { progress: OperationProgress };

/** Whether no read can settle an operation: a person must decide. */
export function isHeld({ progress }: Pick<Operation, 'progress'>): boolean {
  return progress.state === 'uncertain' && progress.held;
}

/** Whether an operation may have been applied upstream although no answer said so. */
export function isDoubtful({ progress }: Pick<Operation, 'progress'>): boolean {
  if (progress.state === 'uncertain') return true;
  return (progress.state === 'pending' || progress.state === 'in_flight') && progress.doubtful;
}
