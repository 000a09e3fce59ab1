/** The kinds of local changes that are delivered to the upstream. */
export const operationKinds = [
  'usage',
  'decrease',
  'disable',
  'enable',
  'create_coupon',
  'redeem',
  'void',
] as const;

export type OperationKind = (typeof operationKinds)[number];

/** The changes of a license key. */
export type LicenseOperationKind = Extract<OperationKind, 'usage' | 'decrease' | 'disable' | 'enable'>;

/** First-in-first-out queues: the count of a key, the state of a key, a coupon code, the redemption of an order. */
export type QueueName = 'counter' | 'state' | 'coupon' | 'order';

export const queueOf: Record<OperationKind, QueueName> = {
  usage: 'counter',
  decrease: 'counter',
  disable: 'state',
  enable: 'state',
  create_coupon: 'coupon',
  redeem: 'order',
  void: 'order',
};

export function isLicenseKind(kind: OperationKind): kind is LicenseOperationKind {
  return queueOf[kind] === 'counter' || queueOf[kind] === 'state';
}

/** Why an operation is dead: the upstream refused it, or no longer knows the license key. */
export type DeathCause = 'refused' | 'missing';

/** What earlier attempts of an operation may have done. */
type EarlierAttempts = {
  /** One may have been applied, and neither a read nor an answer can rule that out. */
  maybeApplied: boolean;
  /** One under the id of the operation may have been applied; the upstream, a Latchkey, says so when it is sent again. */
  unanswered: boolean;
};

/** The state of an operation. `baseUses`: the count on which it was sent; null: not known, or it changes no count. */
export type OperationProgress =
  | ({ state: 'pending' } & EarlierAttempts)
  /** Committed before the first byte leaves. `sentAt`: monotonic ms (`Clock.monotonic`). */
  | ({ state: 'in_flight'; baseUses: number | null; sentAt: number } & EarlierAttempts)
  /** `held`: a person must decide. Otherwise it waits for its reconcile delay, and is read back. */
  | { state: 'uncertain'; maybeApplied: boolean; baseUses: number | null; held: boolean }
  /** `finishedAt`: epoch ms. */
  | { state: 'delivered' | 'inferred' | 'cancelled' | 'dropped'; finishedAt: number }
  /** Not applied; `lastError` says why. */
  | { state: 'dead'; cause: DeathCause }
  /** Not applied, because the upstream changed meanwhile. */
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

/** The states of an operation that is still to be delivered or waits for a person. */
export type UnfinishedState = Extract<OperationState, 'pending' | 'in_flight' | 'uncertain'>;

/** An operation without its state. */
type OperationIdentity = {
  /** UUIDv7, unique everywhere, kept across restores. */
  id: string;
  /** The order of arrival in this store. */
  seq: number;
  kind: OperationKind;
  /** How many uses a `usage` counts. Of any other kind: 1. */
  amount: number;
  /** The license key, the coupon code, or the order of a redemption. */
  subject: string;
  /** The id of the product whose secret sends it; null: the API key, which sends changes of coupons. */
  productId: string | null;
  createdAt: number;
  /** The credential of the caller (`Principal.credential`); null for operations that were recorded without it. */
  credential: string | null;
  /** The id of the caller's request. */
  requestId: string | null;
  /** How often it was sent. */
  attempts: number;
  /** Failures in a row: the exponent of the backoff. */
  failures: number;
  /**
   * When it may be read or sent next (`Clock.monotonic`). Null unless it is the first of its queue and not held.
   */
  nextAt: number | null;
  /** `nextAt` was set by an outage: the first success ends the wait. */
  outage: boolean;
  /** Until when an attempt may still arrive at the upstream (monotonic ms); null if none can. */
  reconcileAt: number | null;
  /**
   * The upstream to which it was last sent; only that upstream can reconcile it. Null: it was not sent, or was not carried
   * out under its id.
   */
  upstream: string | null;
  lastError: string | null;
  /** For an enable: whether callers saw the key as enabled when it was requested. */
  seenEnabled: boolean | null;
  /** For an enable: the revision at which its caller saw the license; null: the upstream has named none. */
  seenRevision: number | null;
  /** What to send, if kind and subject are not enough. */
  payload: string | null;
};

export type Operation = OperationIdentity & { progress: OperationProgress };

/** Whether a person must decide about an operation. */
export function isHeld({ progress }: Pick<Operation, 'progress'>): boolean {
  return progress.state === 'uncertain' && progress.held;
}

/** Whether an operation is pending, in flight or uncertain. */
export function isUnfinished({ progress: { state } }: Pick<Operation, 'progress'>): boolean {
  return state === 'pending' || state === 'in_flight' || state === 'uncertain';
}

/** Whether an operation waits for a person: it is held, refused by the upstream, or in conflict with it. */
export function needsReview(progress: OperationProgress): boolean {
  return isHeld({ progress }) || progress.state === 'conflicted' || progress.state === 'dead';
}

/** Whether an operation may have been applied although no response said so. */
export function mayHaveBeenApplied({ progress }: Pick<Operation, 'progress'>): boolean {
  if (progress.state === 'uncertain') return true;
  const isOpen = progress.state === 'pending' || progress.state === 'in_flight';
  return isOpen && (progress.maybeApplied || progress.unanswered);
}

/** Whether an attempt under the id of the operation may have been applied. */
export function isUnanswered({ progress }: Pick<Operation, 'progress'>): boolean {
  return (progress.state === 'pending' || progress.state === 'in_flight') && progress.unanswered;
}

/*
 * The states of an operation (src/sync/README.md, Operation states):
 *
 *             send            applied
 *   pending ────────▶ in_flight ────────▶ delivered        (inferred, if maybe applied)
 *     ▲ ▲  not_applied │   │ ambiguous
 *     │ └──────────────┘   ▼        read_applied
 *     └─────────────── uncertain ───────▶ delivered        (inferred, if another writer could explain it)
 *        read_absent       │ hold, refused
 *                          ▼
 *                   uncertain, held ───▶ a person: retry, drop, confirm
 *
 *   refused:  pending, in_flight ▶ dead, unless it may have been applied: then it is held.
 *   repeat:   a disable whose answer was lost goes back to pending, marked maybe applied.
 *   lose:     an operation that was sent under its id goes back to pending, unanswered: it is sent again under its id.
 *   A person may also retry, drop or confirm a dead or conflicted operation; a coupon is looked for before a retry.
 */

/** Everything that can happen to an operation. Times are epoch ms, except that of `send` (`Clock.monotonic`). */
export type OperationEvent =
  | { type: 'send'; baseUses: number | null; at: number }
  /**
   * `certain`: it does not matter whether an earlier attempt was applied as well. `isUnknown`: the upstream did not get the
   * id of the operation, so it may have counted an earlier attempt, too.
   */
  | { type: 'applied'; certain: boolean; isUnknown?: boolean; at: number }
  | { type: 'not_applied' }
  | { type: 'ambiguous' }
  /** The response was lost, and sending the operation again does no harm. */
  | { type: 'repeat' }
  /** The response was lost, or an unknown history may have sent it: the upstream knows the operation by its id. */
  | { type: 'lose' }
  | { type: 'refused'; cause: DeathCause }
  /** A read made for this attempt shows that there is nothing to send. */
  | { type: 'needless'; at: number }
  /** Another copy of this store, such as a backup, may have sent it. `lasting`: no read can make that certain. */
  | { type: 'doubt'; baseUses: number | null; lasting: boolean }
  /** It may have been delivered before this start, but is sent anyway. */
  | { type: 'resend' }
  /** An upstream that knows operations by their ids was restored, and may have lost it. */
  | { type: 'resume' }
  /** A read shows that it was applied; `certain` if no other writer can explain that. */
  | { type: 'read_applied'; certain: boolean; at: number }
  /** A read shows that it was not applied; `certain` as above. */
  | { type: 'read_absent'; certain: boolean }
  /** The upstream knows the license key again. */
  | { type: 'reopen' }
  | { type: 'hold' }
  | { type: 'conflict' }
  | { type: 'cancel'; at: number }
  /** A later change of the same value was delivered. */
  | { type: 'superseded'; at: number }
  | { type: 'retry' }
  /** A person asks to look for it at the upstream; it is sent again if it is not found. */
  | { type: 'recheck' }
  | { type: 'drop'; at: number }
  | { type: 'confirm'; at: number };

export type OperationEventType = OperationEvent['type'];

type ProgressOf<State extends OperationState> = Extract<OperationProgress, { state: State }>;
type EventOf<Type extends OperationEventType> = Extract<OperationEvent, { type: Type }>;

/** The next state, or null if the event cannot happen in this state. */
type Cell<State extends OperationState, Type extends OperationEventType> =
  ((progress: ProgressOf<State>, event: EventOf<Type>) => OperationProgress) | null;

type Row<State extends OperationState> = { [Type in OperationEventType]: Cell<State, Type> };

const nothing = {
  send: null,
  applied: null,
  not_applied: null,
  ambiguous: null,
  repeat: null,
  lose: null,
  refused: null,
  needless: null,
  doubt: null,
  resend: null,
  resume: null,
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
const pending = (maybeApplied = false, unanswered = false): OperationProgress => ({
  state: 'pending',
  maybeApplied,
  unanswered,
});
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
const isDoubtful = ({ maybeApplied, unanswered }: { maybeApplied: boolean; unanswered: boolean }): boolean =>
  maybeApplied || unanswered;
/** The response to this attempt is clear, but an earlier attempt may have been applied as well. */
const applied = ({ maybeApplied }: { maybeApplied: boolean }, { at }: { at: number }): OperationProgress => ({
  state: maybeApplied ? 'inferred' : 'delivered',
  finishedAt: at,
});

/** The state machine of an operation: state × event. An event that is missing in `nothing` does not compile. */
export const operationTransitions: { [State in OperationState]: Row<State> } = {
  pending: {
    ...nothing,
    send: ({ maybeApplied, unanswered }, { baseUses, at }) => ({
      state: 'in_flight',
      maybeApplied,
      unanswered,
      baseUses,
      sentAt: at,
    }),
    needless: applied,
    refused: ({ maybeApplied }, { cause }) => (maybeApplied ? held(null, true) : { state: 'dead', cause }),
    lose: ({ maybeApplied }) => pending(maybeApplied, true),
    doubt: (progress, { baseUses, lasting }) => uncertain(baseUses, isDoubtful(progress) || lasting),
    resend: ({ unanswered }) => pending(true, unanswered),
    hold: (progress) => held(null, isDoubtful(progress)),
    conflict: conflicted,
    cancel: cancelled,
    retry: (progress) => progress,
    drop: dropped,
  },
  in_flight: {
    ...nothing,
    applied: ({ maybeApplied, unanswered }, { certain, isUnknown = false, at }) =>
      certain
        ? { state: 'delivered', finishedAt: at }
        : applied({ maybeApplied: maybeApplied || (isUnknown && unanswered) }, { at }),
    not_applied: ({ maybeApplied, unanswered }) => pending(maybeApplied, unanswered),
    ambiguous: (progress) => uncertain(progress.baseUses, isDoubtful(progress)),
    repeat: ({ unanswered }) => pending(true, unanswered),
    lose: ({ maybeApplied }) => pending(maybeApplied, true),
    refused: ({ maybeApplied, baseUses }, { cause }) =>
      maybeApplied ? held(baseUses, true) : { state: 'dead', cause },
    doubt: (progress, event) =>
      uncertain(progress.baseUses ?? event.baseUses, isDoubtful(progress) || event.lasting),
    conflict: conflicted,
    cancel: cancelled,
  },
  uncertain: {
    ...nothing,
    // `dead` means not applied, so an operation that may have been applied is held instead.
    refused: ({ maybeApplied, baseUses }) => held(baseUses, maybeApplied),
    doubt: (progress, { baseUses, lasting }) => ({
      ...progress,
      maybeApplied: progress.maybeApplied || lasting,
      baseUses: progress.baseUses ?? baseUses,
    }),
    read_applied: ({ maybeApplied }, { certain, at }) => ({
      state: certain && !maybeApplied ? 'delivered' : 'inferred',
      finishedAt: at,
    }),
    read_absent: ({ maybeApplied }, { certain }) => pending(maybeApplied || !certain),
    hold: ({ maybeApplied, baseUses }) => held(baseUses, maybeApplied),
    conflict: conflicted,
    superseded: inferred,
    // A person sends it again although it may have been applied: no read can make that certain.
    retry: () => pending(true),
    recheck: ({ maybeApplied }) => uncertain(null, maybeApplied),
    drop: dropped,
    confirm: delivered,
  },
  conflicted: {
    ...nothing,
    superseded: cancelled,
    retry: () => pending(),
    recheck: () => uncertain(null, false),
    drop: dropped,
    confirm: delivered,
  },
  dead: {
    ...nothing,
    // In a history that this store does not know, the key may have come back and the operation may have been sent.
    doubt: ({ cause }, { baseUses, lasting }) =>
      cause === 'missing' ? uncertain(baseUses, lasting) : { state: 'dead', cause },
    lose: ({ cause }) => (cause === 'missing' ? pending(false, true) : { state: 'dead', cause }),
    reopen: ({ cause }) => (cause === 'missing' ? pending() : { state: 'dead', cause }),
    superseded: cancelled,
    retry: () => pending(),
    recheck: () => uncertain(null, false),
    drop: dropped,
    confirm: delivered,
  },
  delivered: { ...nothing, resume: () => pending(false, true) },
  inferred: { ...nothing, resume: () => pending(true, true) },
  cancelled: nothing,
  dropped: nothing,
};

/** The state after the event; null if the event cannot happen in this state. */
export function nextProgress(progress: OperationProgress, event: OperationEvent): OperationProgress | null {
  // Each cell has exact types; the compiler cannot correlate the two lookups.
  const cell = operationTransitions[progress.state][event.type] as
    ((progress: OperationProgress, event: OperationEvent) => OperationProgress) | null;
  return cell === null ? null : cell(progress, event);
}

/**
 * What happens to an operation whose response is lost. `isKeyed`: it was sent under its id to a Latchkey. A disable sets a
 * value, so it may be sent again.
 */
export function eventOfLoss({ kind }: Pick<Operation, 'kind'>, isKeyed: boolean): OperationEvent {
  if (isKeyed) return { type: 'lose' };
  return { type: kind === 'disable' ? 'repeat' : 'ambiguous' };
}

/** The operation after the event. No other function changes an operation. Throws if the table has no cell. */
export function advance(operation: Operation, event: OperationEvent): Operation {
  const progress = nextProgress(operation.progress, event);
  if (progress === null) {
    throw new Error(`operation ${operation.id} is ${operation.progress.state}: no ${event.type} from there`);
  }
  const attempts = event.type === 'send' ? operation.attempts + 1 : operation.attempts;
  return { ...operation, attempts, progress };
}
