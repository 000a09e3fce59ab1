/** A local change to deliver upward. */
export type OperationKind = 'usage' | 'decrease' | 'disable' | 'enable' | 'create_coupon';

/** The kinds that are sent about a license key. */
export type LicenseOperationKind = Extract<OperationKind, 'usage' | 'decrease' | 'disable' | 'enable'>;

/** First-in-first-out queues: a key's counter, a key's state, a coupon code. */
export type QueueName = 'counter' | 'state' | 'coupon';

export const queueOf: Record<OperationKind, QueueName> = {
  usage: 'counter',
  decrease: 'counter',
  disable: 'state',
  enable: 'state',
  create_coupon: 'coupon',
};

/** Why an operation is dead: the upstream refused it, or does not know the license key any more. */
export type DeathCause = 'refused' | 'missing';

/** Where an operation stands. Times are epoch ms. `uncertain`: it may have been applied, and no read can rule that out. */
export type OperationProgress =
  | { state: 'pending'; maybeApplied: boolean }
  /** Committed as such before the first byte left. `baseUses` is the count it was sent on. */
  | { state: 'in_flight'; maybeApplied: boolean; baseUses: number | null; sentAt: number }
  /** `held`: reading cannot decide it, a person must. Otherwise it waits for its reconcile delay, and is read back. */
  | { state: 'uncertain'; maybeApplied: boolean; baseUses: number | null; held: boolean }
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
type OperationIdentity = {
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
  /** When the head of its queue may take its next step; null for those behind the head, held or finished. */
  nextAt: number | null;
  /** `nextAt` was set by an outage: the first success after it clears the wait. */
  outage: boolean;
  /** Until when an attempt of it may still be on its way (`Clock.elapsed`); null when there was no such attempt. */
  reconcileAt: number | null;
  /** The upstream to which it was first sent: only that one can reconcile its uncertainty. Null before. */
  upstream: string | null;
  lastError: string | null;
  /** Of an enable: what callers here saw when it was asked for. */
  seenEnabled: boolean | null;
  /** What is sent, where the kind and subject do not say it all. */
  payload: string | null;
};

export type Operation = OperationIdentity & { progress: OperationProgress };

/** Whether no read can reconcile an operation: a person must decide. */
export function isHeld({ progress }: Pick<Operation, 'progress'>): boolean {
  return progress.state === 'uncertain' && progress.held;
}

/** Whether an operation may have been applied upstream although no answer said so. */
export function mayHaveBeenApplied({ progress }: Pick<Operation, 'progress'>): boolean {
  if (progress.state === 'uncertain') return true;
  return (progress.state === 'pending' || progress.state === 'in_flight') && progress.maybeApplied;
}

/*
 * The way of an operation (src/sync/README.md, Operation states):
 *
 *             send            applied
 *   pending ────────▶ in_flight ────────▶ delivered        (inferred, if it was uncertain)
 *     ▲ ▲  not_applied │   │ ambiguous
 *     │ └──────────────┘   ▼        read_applied
 *     └─────────────── uncertain ───────▶ delivered        (inferred, if another writer could explain it)
 *        read_absent       │ hold, refused
 *                          ▼
 *                   uncertain, held ───▶ a person: retry, drop, confirm
 *
 *   refused:  pending, in_flight ▶ dead, unless it may have been applied: then it is held.
 *   repeat:   a disable whose answer was lost goes back to pending, uncertain.
 *   A person may also retry, drop or confirm what is dead or conflicted; a coupon is looked for before it is retried.
 */

/** Everything that can happen to an operation. Times are epoch ms. */
export type OperationEvent =
  | { type: 'send'; baseUses: number | null; at: number }
  /** `certain`: it does not matter whether an earlier attempt was applied as well. */
  | { type: 'applied'; certain: boolean; at: number }
  | { type: 'not_applied' }
  | { type: 'ambiguous' }
  /** The answer was lost, and sending it again does no harm. */
  | { type: 'repeat' }
  | { type: 'refused'; cause: DeathCause }
  /** A read made for this attempt shows that there is nothing to send. */
  | { type: 'needless'; at: number }
  /** It may have been delivered without this store knowing; `lasting`: no read can make that certain. */
  | { type: 'question'; baseUses: number | null; lasting: boolean }
  /** It may have been delivered before this start, but is sent all the same. */
  | { type: 'resend' }
  /** Read-back shows it applied; `certain` when no other writer could have made it look so. */
  | { type: 'read_applied'; certain: boolean; at: number }
  /** Read-back shows it not applied; `certain` as above. */
  | { type: 'read_absent'; certain: boolean }
  /** The license key that it died with is known to the upstream again. */
  | { type: 'reopen' }
  | { type: 'hold' }
  | { type: 'conflict' }
  | { type: 'cancel'; at: number }
  /** A later change of the same value was delivered. */
  | { type: 'superseded'; at: number }
  | { type: 'retry' }
  /** A person has it looked for upstream, to be sent again where it is not found. */
  | { type: 'recheck' }
  | { type: 'drop'; at: number }
  | { type: 'confirm'; at: number };

export type OperationEventType = OperationEvent['type'];

type ProgressOf<State extends OperationState> = Extract<OperationProgress, { state: State }>;
type EventOf<Type extends OperationEventType> = Extract<OperationEvent, { type: Type }>;

/** One cell: the next progress, or null where the event cannot happen in that state. */
type Cell<State extends OperationState, Type extends OperationEventType> =
  ((progress: ProgressOf<State>, event: EventOf<Type>) => OperationProgress) | null;

type Row<State extends OperationState> = { [Type in OperationEventType]: Cell<State, Type> };

const nothing = {
  send: null,
  applied: null,
  not_applied: null,
  ambiguous: null,
  repeat: null,
  refused: null,
  needless: null,
  question: null,
  resend: null,
  read_applied: null,
  read_absent: null,
  hold: null,
  reopen: null,
  conflict: null,
  cancel: null,
  superseded: null,
  retry: null,
  recheck: null,
  drop: null,
  confirm: null,
} as const;

const finish =
  (state: 'delivered' | 'inferred' | 'cancelled' | 'dropped') =>
  (_: OperationProgress, { at }: { at: number }): OperationProgress => ({ state, finishedAt: at });
const delivered = finish('delivered');
const dropped = finish('dropped');
const cancelled = finish('cancelled');
const inferred = finish('inferred');
const conflicted = (): OperationProgress => ({ state: 'conflicted' });
const pending = (): OperationProgress => ({ state: 'pending', maybeApplied: false });
const uncertain = (baseUses: number | null, maybeApplied: boolean): OperationProgress => ({
  state: 'uncertain',
  maybeApplied,
  baseUses,
  held: false,
});
const held = (baseUses: number | null, maybeApplied: boolean): OperationProgress => ({
  state: 'uncertain',
  maybeApplied,
  baseUses,
  held: true,
});
/** The answer to this attempt is clear; an earlier one may have been applied as well. */
const applied = ({ maybeApplied }: { maybeApplied: boolean }, { at }: { at: number }): OperationProgress => ({
  state: maybeApplied ? 'inferred' : 'delivered',
  finishedAt: at,
});

/** The machine of one outbox entry: state × event. A missing cell does not compile. */
export const operationTransitions: { [State in OperationState]: Row<State> } = {
  pending: {
    ...nothing,
    send: ({ maybeApplied }, { baseUses, at }) => ({
      state: 'in_flight',
      maybeApplied,
      baseUses,
      sentAt: at,
    }),
    needless: applied,
    refused: ({ maybeApplied }, { cause }) => (maybeApplied ? held(null, true) : { state: 'dead', cause }),
    question: ({ maybeApplied }, { baseUses, lasting }) => uncertain(baseUses, maybeApplied || lasting),
    resend: () => ({ state: 'pending', maybeApplied: true }),
    hold: ({ maybeApplied }) => held(null, maybeApplied),
    conflict: conflicted,
    cancel: cancelled,
    retry: (progress) => progress,
    drop: dropped,
  },
  in_flight: {
    ...nothing,
    applied: (progress, { certain, at }) =>
      certain ? { state: 'delivered', finishedAt: at } : applied(progress, { at }),
    not_applied: ({ maybeApplied }) => ({ state: 'pending', maybeApplied }),
    ambiguous: ({ maybeApplied, baseUses }) => uncertain(baseUses, maybeApplied),
    repeat: () => ({ state: 'pending', maybeApplied: true }),
    refused: ({ maybeApplied, baseUses }, { cause }) =>
      maybeApplied ? held(baseUses, true) : { state: 'dead', cause },
    question: ({ maybeApplied, baseUses }, event) =>
      uncertain(baseUses ?? event.baseUses, maybeApplied || event.lasting),
    conflict: conflicted,
    cancel: cancelled,
  },
  uncertain: {
    ...nothing,
    // What may have been applied is never called dead, which says that it was not.
    refused: ({ maybeApplied, baseUses }) => held(baseUses, maybeApplied),
    question: (progress, { baseUses, lasting }) => ({
      ...progress,
      maybeApplied: progress.maybeApplied || lasting,
      baseUses: progress.baseUses ?? baseUses,
    }),
    read_applied: ({ maybeApplied }, { certain, at }) => ({
      state: certain && !maybeApplied ? 'delivered' : 'inferred',
      finishedAt: at,
    }),
    read_absent: ({ maybeApplied }, { certain }) => ({
      state: 'pending',
      maybeApplied: maybeApplied || !certain,
    }),
    hold: ({ maybeApplied, baseUses }) => held(baseUses, maybeApplied),
    conflict: conflicted,
    superseded: inferred,
    // A person sends again what may have been applied before: nothing can make that certain any more.
    retry: () => ({ state: 'pending', maybeApplied: true }),
    recheck: ({ maybeApplied }) => uncertain(null, maybeApplied),
    drop: dropped,
    confirm: delivered,
  },
  conflicted: {
    ...nothing,
    superseded: cancelled,
    retry: pending,
    recheck: () => uncertain(null, false),
    drop: dropped,
    confirm: delivered,
  },
  dead: {
    ...nothing,
    // It may have come back with its key, and gone up, in a past that this store does not remember.
    question: ({ cause }, { baseUses, lasting }) =>
      cause === 'missing' ? uncertain(baseUses, lasting) : { state: 'dead', cause },
    reopen: ({ cause }) => (cause === 'missing' ? pending() : { state: 'dead', cause }),
    superseded: cancelled,
    retry: pending,
    recheck: () => uncertain(null, false),
    drop: dropped,
    confirm: delivered,
  },
  delivered: nothing,
  inferred: nothing,
  cancelled: nothing,
  dropped: nothing,
};

/** Where the event leads from here; null when it cannot happen in this state. */
export function nextProgress(progress: OperationProgress, event: OperationEvent): OperationProgress | null {
  // The table is exact per cell; the two lookups together are more than the compiler can correlate.
  const cell = operationTransitions[progress.state][event.type] as
    ((progress: OperationProgress, event: OperationEvent) => OperationProgress) | null;
  return cell === null ? null : cell(progress, event);
}

/** The operation after the event; the only function that changes one. Throws where the table has no cell. */
export function advance(operation: Operation, event: OperationEvent): Operation {
  const progress = nextProgress(operation.progress, event);
  if (progress === null) {
    throw new Error(`operation ${operation.id} is ${operation.progress.state}: no ${event.type} from there`);
  }
  const attempts = event.type === 'send' ? operation.attempts + 1 : operation.attempts;
  return { ...operation, attempts, progress };
}

/** What the log tells of the way of an operation (src/sync/README.md, The log of an operation). */
export const tracePoints = [
  'queued',
  'sent',
  'delivered',
  'uncertain',
  'reconciled',
  'held',
  'dead',
  'reopened',
  'conflicted',
  'cancelled',
  'retried',
  'dropped',
  'confirmed',
] as const;

type TracePoint = (typeof tracePoints)[number];

/** A point on the way of an operation, and what the log tells of the operation as it stood then. */
export type Traced = Pick<
  Operation,
  'id' | 'kind' | 'subject' | 'productKey' | 'attempts' | 'credential' | 'requestId' | 'lastError'
> & { point: TracePoint; state: OperationState };

/** What is told of an operation at a point. */
export function traced(point: TracePoint, operation: Operation): Traced {
  const { id, kind, subject, productKey, attempts, credential, requestId, lastError, progress } = operation;
  const { state } = progress;
  return { point, id, kind, subject, productKey, state, attempts, credential, requestId, lastError };
}

/** The point that an event brings an operation to; null: it waits to be sent again, as the loops tell with the reason. */
export function tracePointOf(event: OperationEvent, after: OperationProgress): TracePoint | null {
  switch (event.type) {
    case 'send':
      return 'sent';
    case 'applied':
      return 'delivered';
    case 'ambiguous':
    case 'repeat':
    case 'resend':
    case 'question':
      return 'uncertain';
    case 'needless':
    case 'read_applied':
    case 'read_absent':
    case 'superseded':
      return 'reconciled';
    case 'refused':
      return after.state === 'dead' ? 'dead' : 'held';
    case 'hold':
      return 'held';
    case 'reopen':
      return 'reopened';
    case 'conflict':
      return 'conflicted';
    case 'cancel':
      return 'cancelled';
    case 'retry':
    case 'recheck':
      return 'retried';
    case 'drop':
      return 'dropped';
    case 'confirm':
      return 'confirmed';
    case 'not_applied':
      return null;
    default:
      return event satisfies never;
  }
}
