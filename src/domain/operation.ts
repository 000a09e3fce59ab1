/** A local change to deliver upward. */
export type OperationKind = 'usage' | 'decrease' | 'disable' | 'enable' | 'create_coupon' | 'redeem' | 'void';

/** The kinds that are sent about a license key. */
export type LicenseOperationKind = Extract<OperationKind, 'usage' | 'decrease' | 'disable' | 'enable'>;

/** First-in-first-out queues: a key's counter, a key's state, a coupon code, an order. */
export type LaneName = 'counter' | 'state' | 'coupon' | 'redemption';

export const laneOf: Record<OperationKind, LaneName> = {
  usage: 'counter',
  decrease: 'counter',
  disable: 'state',
  enable: 'state',
  create_coupon: 'coupon',
  redeem: 'redemption',
  void: 'redemption',
};

/** Where an operation stands (sync design, section 1). Times are epoch ms. */
export type OperationProgress =
  /** `doubtful`: an earlier attempt may have counted, though a read did not show it. */
  | { state: 'pending'; doubtful: boolean }
  /** Committed as such before the first byte left. `baseUses` is the count it was sent on. */
  | { state: 'in_flight'; doubtful: boolean; baseUses: number | null; sentAt: number }
  /** `held`: reading cannot decide it, a person must. Otherwise it waits for its fence. */
  | { state: 'uncertain'; baseUses: number | null; held: boolean }
  | { state: 'delivered' | 'inferred' | 'cancelled' | 'dropped'; finishedAt: number }
  /** Not sent, or refused for good; `lastError` says why. */
  | { state: 'conflicted' | 'dead' };

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

/** The states in which an operation still has a way to go by itself, or waits for a person in `uncertain`. */
export type UnfinishedState = Extract<OperationState, 'pending' | 'in_flight' | 'uncertain'>;

/** What an operation is, apart from where it stands. */
export type OperationIdentity = {
  /** UUIDv7, global, kept across restores. */
  id: string;
  /** Local order of arrival. */
  seq: number;
  kind: OperationKind;
  /** The license key, the coupon code or the order it is about. */
  subject: string;
  /** The configured product under whose secret it is sent; null for coupons. */
  productKey: string | null;
  createdAt: number;
  /** Times it was sent. */
  attempts: number;
  /** Times in a row that the way up failed: the exponent of the backoff. */
  failures: number;
  /** When the head of its lane may take its next step; null for those behind the head, held or finished. */
  nextAt: number | null;
  /** `nextAt` was set by an outage: the first success after it clears the wait. */
  outage: boolean;
  lastError: string | null;
  /** What the caller had seen, sent along to a Latchkey. */
  revision: string | null;
  /** What is sent, where the kind and subject do not say it all. */
  payload: string | null;
};

export type Operation = OperationIdentity & { progress: OperationProgress };

/** Everything that can happen to an operation. Times are epoch ms. */
export type OperationEvent =
  | { type: 'send'; baseUses: number | null; at: number }
  | { type: 'applied'; at: number }
  | { type: 'not_applied' }
  | { type: 'ambiguous' }
  | { type: 'refused' }
  /** A read made for this attempt shows that there is nothing to send. */
  | { type: 'needless'; at: number }
  /** Something outside (a restore, an unexplained movement) makes its fate unknown. */
  | { type: 'doubt'; baseUses: number | null }
  /** It may have been delivered in a past that this store does not remember; it is sent all the same. */
  | { type: 'suspect' }
  /** Read-back shows it applied; `certain` when no other writer could have made it look so. */
  | { type: 'read_applied'; certain: boolean; at: number }
  /** Read-back shows it not applied; `certain` as above. */
  | { type: 'read_absent'; certain: boolean }
  | { type: 'hold' }
  | { type: 'conflict' }
  | { type: 'cancel'; at: number }
  | { type: 'retry' }
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
  refused: null,
  needless: null,
  doubt: null,
  suspect: null,
  read_applied: null,
  read_absent: null,
  hold: null,
  conflict: null,
  cancel: null,
  retry: null,
  drop: null,
  confirm: null,
} as const;

const finish =
  (state: 'delivered' | 'inferred' | 'cancelled' | 'dropped') =>
  (_: OperationProgress, { at }: { at: number }): OperationProgress => ({ state, finishedAt: at });
const delivered = finish('delivered');
const dropped = finish('dropped');
const dead = (): OperationProgress => ({ state: 'dead' });
const conflicted = (): OperationProgress => ({ state: 'conflicted' });
const pending = (): OperationProgress => ({ state: 'pending', doubtful: false });
const doubted = (_: OperationProgress, { baseUses }: EventOf<'doubt'>): OperationProgress => ({
  state: 'uncertain',
  baseUses,
  held: false,
});

/** The machine of one outbox entry: state × event. A missing cell does not compile. */
export const operationTransitions: { [State in OperationState]: Row<State> } = {
  pending: {
    ...nothing,
    send: ({ doubtful }, { baseUses, at }) => ({ state: 'in_flight', doubtful, baseUses, sentAt: at }),
    needless: ({ doubtful }, { at }) => ({ state: doubtful ? 'inferred' : 'delivered', finishedAt: at }),
    refused: dead,
    doubt: doubted,
    suspect: () => ({ state: 'pending', doubtful: true }),
    conflict: conflicted,
    cancel: finish('cancelled'),
    retry: (progress) => progress,
    drop: dropped,
  },
  in_flight: {
    ...nothing,
    applied: ({ doubtful }, { at }) => ({ state: doubtful ? 'inferred' : 'delivered', finishedAt: at }),
    not_applied: ({ doubtful }) => ({ state: 'pending', doubtful }),
    ambiguous: ({ baseUses }) => ({ state: 'uncertain', baseUses, held: false }),
    refused: dead,
    doubt: ({ baseUses }, event) => ({
      state: 'uncertain',
      baseUses: baseUses ?? event.baseUses,
      held: false,
    }),
    conflict: conflicted,
  },
  uncertain: {
    ...nothing,
    refused: dead,
    doubt: ({ baseUses }, event) => ({
      state: 'uncertain',
      baseUses: baseUses ?? event.baseUses,
      held: false,
    }),
    read_applied: (_, { certain, at }) => ({ state: certain ? 'delivered' : 'inferred', finishedAt: at }),
    read_absent: (_, { certain }) => ({ state: 'pending', doubtful: !certain }),
    hold: ({ baseUses }) => ({ state: 'uncertain', baseUses, held: true }),
    conflict: conflicted,
    retry: pending,
    drop: dropped,
    confirm: delivered,
  },
  conflicted: { ...nothing, retry: pending, drop: dropped, confirm: delivered },
  dead: { ...nothing, retry: pending, drop: dropped, confirm: delivered },
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
