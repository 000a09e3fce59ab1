import { countAfter } from '../license.ts';
import {
  isHeld,
  type Operation,
  type OperationKind,
  type OperationProgress,
  type OperationState,
  mayHaveBeenApplied,
  nextProgress,
  type OperationEvent,
} from './operation.ts';

/*
 * How an operation stands, for the person who looks at it: what its state means, what it waits for, the counts
 * to compare, and what each decision would do.
 */

/** What holds up everything that would go up under a credential; `until` by `Clock.elapsed`. */
export type Blocker =
  | { cause: 'paused' }
  | { cause: 'credential_missing' }
  | { cause: 'credential_refused'; until: number }
  | { cause: 'upstream_away'; until: number }
  | { cause: 'retry_after'; until: number };

export const waitCauses = [
  'paused',
  'credential_missing',
  'credential_refused',
  'upstream_away',
  'retry_after',
  'reconcile_delay',
  'behind',
  'backoff',
  'turn',
] as const;

/** What an operation waits for; `leftMs` is null where nobody can tell. */
export type OperationWait = {
  cause: (typeof waitCauses)[number];
  detail: string;
  leftMs: number | null;
};

export type Explanation = {
  meaning: string;
  waits: readonly OperationWait[];
  /** The count that the upstream would show if this operation alone was applied to the one it was sent on. */
  expectedUses: number | null;
  shown: ShownLicense | null;
  /** What each decision would do; null: it cannot be made. */
  decisions: Readonly<Record<Decision, string | null>>;
};

/** What there is to know of an operation besides itself. Instants by `Clock.elapsed`. */
export type Surroundings = {
  now: number;
  /** Until when an earlier request of its queue may still be on its way; null when none is. */
  reconcileAt: number | null;
  /** It is the first of its queue that is unfinished and not held. */
  isHead: boolean;
  blocker: Blocker | null;
  shown: ShownLicense | null;
};

/** Tells how an operation stands. */
export function explain(operation: Operation, surroundings: Surroundings): Explanation {
  const { shown } = surroundings;
  const waits = waitsOf(operation, surroundings);
  const isHeldUp = waits.some(({ cause }) => cause !== 'backoff' && cause !== 'turn');
  const subject = { operation, shown, isHeldUp };
  return {
    meaning: meaningOf(operation),
    waits,
    expectedUses: expectedUses(operation),
    shown,
    decisions: {
      retry: effectOf('retry', subject),
      drop: effectOf('drop', subject),
      confirm: effectOf('confirm', subject),
    },
  };
}

function expectedUses({ kind, progress }: Operation): number | null {
  const base = 'baseUses' in progress ? progress.baseUses : null;
  return base !== null && (kind === 'usage' || kind === 'decrease') ? countAfter(base, kind) : null;
}

type ProgressOf<State extends OperationState> = Extract<OperationProgress, { state: State }>;

const forPerson = 'Nothing more happens until a person decides.';

/** A state without a meaning does not compile. */
const meanings: {
  [State in OperationState]: (operation: Operation, progress: ProgressOf<State>) => string;
} = {
  pending({ kind, attempts }, { maybeApplied }) {
    if (maybeApplied && kind === 'disable')
      return 'An answer to it was lost. To disable a key twice does no harm, so it is sent again.';
    if (maybeApplied)
      return 'It may have been applied before, and nothing could rule that out. It is sent all the same, and ends inferred at best.';
    if (attempts === 0) return 'It is recorded here, and was not sent yet.';
    return 'It was tried, and the store has certainly not applied it. It is tried again.';
  },
  in_flight: () => 'It is on its way to the store, and its answer is awaited.',
  uncertain: ({ kind }, { held }) =>
    held
      ? 'It may have been applied, and no look at the store can tell. It is not sent again by itself: a person decides.'
      : `It may have been applied, and no answer says so. ${readBack[kind]}`,
  delivered: () =>
    'It is done: the store has applied it or had nothing left to change, or a person has said so.',
  inferred: () =>
    'It counts as applied, without proof: another writer, an earlier attempt or a past that was restored could explain what the store shows as well.',
  conflicted: ({ kind }) => `It was not applied: ${conflicts[kind]}. ${forPerson}`,
  dead: (_, { cause }) =>
    cause === 'missing'
      ? 'It was not applied: the store does not know the license key any more. It goes on by itself if the key is seen again.'
      : `It was not applied: the store refused it. ${forPerson}`,
  cancelled: () =>
    'It was not applied, and need not be: it was undone here, refused to the caller who waited for it, or overtaken by a later change.',
  dropped: () =>
    'A person gave it up: it is not sent any more. What of it had reached the store stays there.',
};

function meaningOf(operation: Operation): string {
  const { progress } = operation;
  // The table is exact per state, which the compiler cannot correlate with the progress.
  const meaning = meanings[progress.state] as (operation: Operation, progress: OperationProgress) => string;
  return meaning(operation, progress);
}

const onceNothingArrives = 'Once no attempt of it can still be on its way,';
const countRead = `${onceNothingArrives} the count in the store is read, and shows whether it was.`;
const keyRead = `${onceNothingArrives} the key is read from the store, and shows whether it was.`;

const readBack: Record<OperationKind, string> = {
  usage: countRead,
  decrease: countRead,
  disable: keyRead,
  enable: keyRead,
  create_coupon: `${onceNothingArrives} its code is looked for among the coupons of the store.`,
};

const movedOn = 'the store has moved on';

const conflicts: Record<OperationKind, string> = {
  usage: movedOn,
  decrease: movedOn,
  disable: movedOn,
  enable: 'the key was disabled in the store after it was seen enabled here, and a revocation wins',
  create_coupon: 'the store has another coupon with this code',
};

const causes: Record<OperationWait['cause'], string> = {
  paused: 'Nothing is sent to the store until: latchkey sync resume',
  credential_missing:
    'No credential is configured for it: put its product, or the API key of coupons, back into the configuration and reload',
  credential_refused:
    'The store refuses the credential: put the right one into the configuration and reload. It is asked again',
  upstream_away: 'The store is away. It is asked again',
  retry_after: 'The store asked to be left alone',
  reconcile_delay: 'An earlier attempt may still be on its way (sync.reconcile_after)',
  behind: 'Earlier changes of the same thing go first',
  backoff: 'A pause after an attempt that brought nothing',
  turn: 'It is due, and is next as soon as sync.rate allows',
};

function waitsOf(operation: Operation, surroundings: Surroundings): readonly OperationWait[] {
  const { progress, nextAt } = operation;
  const isOnItsWay = progress.state === 'pending' || (progress.state === 'uncertain' && !isHeld(operation));
  if (!isOnItsWay) return [];
  const { now, reconcileAt, isHead, blocker } = surroundings;
  const waits: OperationWait[] = [];
  const wait = (cause: OperationWait['cause'], until: number | null = null): void => {
    waits.push({ cause, detail: causes[cause], leftMs: until === null ? null : Math.max(0, until - now) });
  };
  if (blocker !== null) wait(blocker.cause, 'until' in blocker ? blocker.until : null);
  if (reconcileAt !== null) wait('reconcile_delay', reconcileAt);
  if (!isHead) wait('behind');
  else if (reconcileAt === null && nextAt !== null && nextAt > now) wait('backoff', nextAt);
  if (waits.length === 0) wait('turn');
  return waits;
}

/** What the upstream last said of the license key; `at` in epoch ms. */
type ShownLicense = { uses: number; enabled: boolean; at: number };

/** `isHeldUp`: it waits for what no retry ends. */
type Subject = { operation: Operation; shown: ShownLicense | null; isHeldUp: boolean };
type Effect = (subject: Subject) => string;

/** What a decision would do, for exactly this operation; null: it cannot be made. */
function effectOf(decision: Decision, subject: Subject): string | null {
  const { operation } = subject;
  return isOpenTo(operation, decision) ? effects[decision][operation.kind](subject) : null;
}

const sameKey = 'Here the key is again as the store last said';

const retry: Record<OperationKind, Effect> = {
  usage: (subject) =>
    sentAgain(subject, {
      clean: 'and counts once if the store takes it now.',
      uncertain: `If it was applied before, the use counts twice${twice(subject)}. It ends inferred.`,
    }),
  decrease: (subject) =>
    sentAgain(subject, {
      clean: 'and takes one use back if the store takes it now.',
      uncertain: 'If it was applied before, one use too many is taken back. It ends inferred.',
    }),
  disable: (subject) =>
    sentAgain(subject, {
      clean: 'and disables the key if the store takes it now.',
      uncertain: 'That does no harm: the key is disabled however often it arrives.',
    }),
  enable: (subject) =>
    sentAgain(subject, {
      clean: 'and enables the key, also when it was disabled in the store since.',
      uncertain: 'If the key was disabled in the store since, that is undone.',
    }),
  create_coupon: ({ operation, isHeldUp }) =>
    operation.progress.state === 'pending'
      ? triedAgain(isHeldUp)
      : 'Its code is looked for in the store first, and it is created only where that is free: never twice.',
};

function triedAgain(isHeldUp: boolean): string {
  const when = isHeldUp ? 'as soon as what it waits for is over' : 'at once';
  return `It is tried again ${when}, without waiting out a pause between attempts.`;
}

function sentAgain(
  { operation, isHeldUp }: Subject,
  { clean, uncertain }: { clean: string; uncertain: string },
): string {
  if (operation.progress.state === 'pending') return triedAgain(isHeldUp);
  return mayHaveBeenApplied(operation) ? `It is sent again. ${uncertain}` : `It is sent again, ${clean}`;
}

/** The two counts between which it lies, where the one that it was sent on is known. */
function twice({ operation: { progress, kind } }: Subject): string {
  const base = 'baseUses' in progress ? progress.baseUses : null;
  if (base === null || kind !== 'usage') return '';
  const once = countAfter(base, kind);
  return `: ${countAfter(once, kind)} instead of ${once}`;
}

const drop: Record<OperationKind, Effect> = {
  usage: (subject) =>
    givenUp(subject, {
      clean: 'the store never counts this use.',
      uncertain: 'If it was applied, the store goes on counting the use; if not, it never counts.',
    }),
  decrease: (subject) =>
    givenUp(subject, {
      clean: 'the store goes on counting the use that it takes back.',
      uncertain: 'If it was applied, the use stays taken back; if not, the store goes on counting it.',
    }),
  disable: (subject) =>
    givenUp(subject, {
      clean: `the key is not disabled by it. ${sameKey}${stateOf(subject)}.`,
      uncertain: `If it was applied, the key is disabled in the store. ${sameKey}${stateOf(subject)}.`,
    }),
  enable: (subject) =>
    givenUp(subject, {
      clean: 'the key stays as the store has it.',
      uncertain: 'If it was applied and nobody has disabled the key since, it stays enabled in the store.',
    }),
  create_coupon: (subject) =>
    givenUp(subject, {
      clean: 'the coupon is not created, and is gone from here.',
      uncertain:
        'It is gone from here. If it was created, the coupon stays in the store, and is listed from there.',
    }),
};

function givenUp({ operation }: Subject, { clean, uncertain }: { clean: string; uncertain: string }): string {
  return mayHaveBeenApplied(operation) ? `It is not sent again. ${uncertain}` : `It is not sent: ${clean}`;
}

function stateOf({ shown }: Subject): string {
  if (shown === null) return '';
  return shown.enabled ? ', enabled' : ', disabled';
}

const confirm: Record<OperationKind, Effect> = {
  usage: countConfirmed,
  decrease: countConfirmed,
  disable: (subject) => `${nothingSent} ${sameKey}${stateOf(subject)}.`,
  enable: () => `${nothingSent} The key stays as the store has it.`,
  create_coupon: () =>
    `${nothingSent} It is the coupon that the store lists under its code, also for orders that redeemed it here.`,
};

const nothingSent = 'It counts as delivered, and nothing is sent.';

/** A held one has been read already: the count that was shown contains it, if it was applied. */
function countConfirmed({ operation, shown }: Subject): string {
  const { kind } = operation;
  if (isHeld(operation)) return `${nothingSent} The count stays as the store showed it.`;
  if (shown === null || (kind !== 'usage' && kind !== 'decrease')) return nothingSent;
  return `${nothingSent} The count that is known of the store moves along, from ${shown.uses} to ${countAfter(shown.uses, kind)}.`;
}

const effects: Record<Decision, Record<OperationKind, Effect>> = { retry, drop, confirm };

/** What a person decides about an operation: send it again, give it up, or say that it was applied. */
export type Decision = 'retry' | 'drop' | 'confirm';

/** A coupon can be looked for before it is created again; what a count or a state shows has been read already. */
export function eventOfDecision(
  { kind, progress }: Pick<Operation, 'kind' | 'progress'>,
  decision: Decision,
  at: number,
): OperationEvent {
  if (decision !== 'retry') return { type: decision, at };
  return { type: kind === 'create_coupon' && progress.state !== 'pending' ? 'recheck' : 'retry' };
}

/** Whether a decision can be made about an operation as it stands. */
function isOpenTo(operation: Pick<Operation, 'kind' | 'progress'>, decision: Decision): boolean {
  return nextProgress(operation.progress, eventOfDecision(operation, decision, 0)) !== null;
}
