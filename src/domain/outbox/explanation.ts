import {
  isHeld,
  queueOf,
  type Operation,
  type OperationKind,
  type OperationProgress,
  type OperationState,
  mayHaveBeenApplied,
  nextProgress,
  type OperationEvent,
} from './operation.ts';
import { usesAfter } from './uses.ts';

/*
 * Explains an operation to a person: what its state means, what it waits for, which counts to compare, and what each
 * decision would do.
 */

/** What blocks every request of a credential. Times are monotonic ms (`Clock.monotonic`). */
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
  'not_a_latchkey',
  'backoff',
  'turn',
] as const;

/** What an operation waits for; `leftMs` is null if unknown. */
export type OperationWait = {
  cause: (typeof waitCauses)[number];
  detail: string;
  leftMs: number | null;
};

export type Explanation = {
  meaning: string;
  waits: readonly OperationWait[];
  /** `baseUses` plus this operation: the count to expect if nothing else changed. Null if `baseUses` is unknown. */
  expectedUses: number | null;
  shown: ShownLicense | null;
  /** What each decision would do; null if it is not possible. */
  decisions: Readonly<Record<Decision, string | null>>;
};

/** What an explanation needs besides the operation. Times are monotonic ms (`Clock.monotonic`). */
export type Surroundings = {
  now: number;
  /** Until when an earlier request of the operation's queue may still arrive at the upstream; null if none can. */
  reconcileAt: number | null;
  /** Whether the operation is the first unfinished operation of its queue that is not held. */
  isHead: boolean;
  blocker: Blocker | null;
  shown: ShownLicense | null;
  isLatchkey: boolean;
};

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

function expectedUses(operation: Operation): number | null {
  const { kind, progress } = operation;
  const base = 'baseUses' in progress ? progress.baseUses : null;
  return base !== null && queueOf[kind] === 'counter' ? usesAfter(base, operation) : null;
}

type ProgressOf<State extends OperationState> = Extract<OperationProgress, { state: State }>;

const forPerson = 'Nothing more happens until a person decides.';

/** A state without a meaning does not compile. */
const meanings: {
  [State in OperationState]: (operation: Operation, progress: ProgressOf<State>) => string;
} = {
  pending({ kind, attempts }, { maybeApplied, unanswered }) {
    if (unanswered && !maybeApplied)
      return 'The response was lost. It is sent again under its id, so that the upstream carries it out once.';
    if (maybeApplied && kind === 'disable')
      return 'The response was lost. Disabling a key twice does no harm, so it is sent again.';
    if (maybeApplied)
      return 'An earlier attempt may have been applied, and nothing could rule that out. It is sent anyway, and ends inferred at best.';
    if (attempts === 0) return 'It is recorded and has not been sent yet.';
    return 'The attempt failed and the store applied nothing. It will be retried.';
  },
  in_flight: () => 'It is being sent, and the response has not arrived yet.',
  uncertain: ({ kind }, { held }) =>
    held
      ? 'It may have been applied, and the store cannot show it. It will not be sent again until a person decides.'
      : `It may have been applied: the response was lost. ${readBack[kind]}`,
  delivered: () => 'Done: the store applied it or had nothing to change, or a person confirmed it.',
  inferred: () =>
    'It counts as applied, without proof: something else (another program, an earlier attempt or a restored backup) could also explain what the store shows.',
  conflicted: ({ kind }) => `It was not applied: ${conflicts[kind]}. ${forPerson}`,
  dead: (_, { cause }) =>
    cause === 'missing'
      ? 'It was not applied: the store no longer knows the license key. It is sent if the store knows the key again.'
      : `It was not applied: the store refused it. ${forPerson}`,
  cancelled: () =>
    'It was not applied and need not be: it was undone here, refused to the caller that waited for it, or superseded by a later change.',
  dropped: () => 'A person gave it up: it will not be sent. Anything that was already sent stays.',
};

function meaningOf(operation: Operation): string {
  const { progress } = operation;
  // The table is exact per state, which the compiler cannot correlate with the progress.
  const meaning = meanings[progress.state] as (operation: Operation, progress: OperationProgress) => string;
  return meaning(operation, progress);
}

const onceNothingArrives = 'After the reconcile delay,';
const countRead = `${onceNothingArrives} Latchkey reads the count in the store, which shows whether it was applied.`;
const keyRead = `${onceNothingArrives} Latchkey reads the key from the store, which shows whether it was applied.`;

const upstreamAsked = 'Latchkey asks the upstream whether it was applied.';

const readBack: Record<OperationKind, string> = {
  usage: countRead,
  decrease: countRead,
  disable: keyRead,
  enable: keyRead,
  create_coupon: `${onceNothingArrives} Latchkey looks for its code among the coupons of the store.`,
  redeem: upstreamAsked,
  void: upstreamAsked,
};

const movedOn = 'the store has changed since';

const conflicts: Record<OperationKind, string> = {
  usage: movedOn,
  decrease: movedOn,
  disable: movedOn,
  enable: 'the key was disabled in the store after it was seen enabled here, and a revocation wins',
  create_coupon: 'the store has another coupon with this code',
  redeem: movedOn,
  void: movedOn,
};

const causes: Record<OperationWait['cause'], string> = {
  paused: 'Sync is paused. To resume: latchkey sync resume',
  credential_missing:
    'No credential is configured for it: put its product, or the API key for coupons, back into the configuration and reload',
  credential_refused:
    'The store refuses the credential: correct the configuration and reload. The next test is due',
  upstream_away: 'The store is unavailable. The next attempt is due',
  retry_after: 'The store asked us to slow down',
  reconcile_delay: 'An earlier attempt may still arrive at the store (sync.reconcile_after)',
  behind: 'Earlier changes of the same key, coupon or order go first',
  not_a_latchkey:
    'Redemptions are sent to an upstream that is a Latchkey, and this one is not, or has not answered yet',
  backoff: 'Waiting to retry after a failed attempt',
  turn: 'It is due, and is sent as soon as sync.rate and sync.concurrency allow',
};

function waitsOf(operation: Operation, surroundings: Surroundings): readonly OperationWait[] {
  const { progress, nextAt } = operation;
  const isOnItsWay = progress.state === 'pending' || (progress.state === 'uncertain' && !isHeld(operation));
  if (!isOnItsWay) return [];
  const { now, reconcileAt, isHead, blocker, isLatchkey } = surroundings;
  const waits: OperationWait[] = [];
  const wait = (cause: OperationWait['cause'], until: number | null = null): void => {
    waits.push({ cause, detail: causes[cause], leftMs: until === null ? null : Math.max(0, until - now) });
  };
  if (blocker !== null) wait(blocker.cause, 'until' in blocker ? blocker.until : null);
  if (reconcileAt !== null) wait('reconcile_delay', reconcileAt);
  if (queueOf[operation.kind] === 'order' && !isLatchkey) wait('not_a_latchkey');
  if (!isHead) wait('behind');
  else if (reconcileAt === null && nextAt !== null && nextAt > now) wait('backoff', nextAt);
  if (waits.length === 0) wait('turn');
  return waits;
}

/** The license key as the upstream last showed it; `at` in epoch ms. */
type ShownLicense = { uses: number; enabled: boolean; at: number };

/** `isHeldUp`: the operation also waits for something that a retry does not end, such as an outage. */
type Subject = { operation: Operation; shown: ShownLicense | null; isHeldUp: boolean };
type Effect = (subject: Subject) => string;

/** What a decision would do for this operation; null if it is not possible. */
function effectOf(decision: Decision, subject: Subject): string | null {
  const { operation } = subject;
  return isOpenTo(operation, decision) ? effects[decision][operation.kind](subject) : null;
}

const sameKey = 'Callers see the key as the store last showed it';

const retry: Record<OperationKind, Effect> = {
  usage: (subject) =>
    sentAgain(subject, {
      clean: 'and counts once if the store accepts it now.',
      uncertain: `If it was applied before, the use counts twice${twice(subject)}. It ends inferred.`,
    }),
  decrease: (subject) =>
    sentAgain(subject, {
      clean: 'and takes one use back if the store accepts it now.',
      uncertain: 'If it was applied before, one use too many is taken back. It ends inferred.',
    }),
  disable: (subject) =>
    sentAgain(subject, {
      clean: 'and disables the key if the store accepts it now.',
      uncertain: 'That does no harm: the key is disabled however often it arrives.',
    }),
  enable: (subject) =>
    sentAgain(subject, {
      clean: 'and enables the key, even if it was disabled in the store since.',
      uncertain: 'If the key was disabled in the store since, that is undone.',
    }),
  create_coupon: ({ operation, isHeldUp }) =>
    operation.progress.state === 'pending'
      ? triedAgain(isHeldUp)
      : 'Its code is looked for in the store first, and the coupon is created only if the code is free: never twice.',
  redeem: orderSentAgain,
  void: orderSentAgain,
};

/** An order redeems one coupon once, so nothing counts twice. */
function orderSentAgain({ operation, isHeldUp }: Subject): string {
  return operation.progress.state === 'pending'
    ? triedAgain(isHeldUp)
    : 'It is sent again. An order counts once, however often it is sent.';
}

function triedAgain(isHeldUp: boolean): string {
  const when = isHeldUp ? 'as soon as the reason for the wait is over' : 'at once';
  return `It is tried again ${when}, without waiting for the next scheduled attempt.`;
}

function sentAgain(
  { operation, isHeldUp }: Subject,
  { clean, uncertain }: { clean: string; uncertain: string },
): string {
  if (operation.progress.state === 'pending') return triedAgain(isHeldUp);
  return mayHaveBeenApplied(operation) ? `It is sent again. ${uncertain}` : `It is sent again, ${clean}`;
}

/** The count after the use was applied twice and after it was applied once; '' if `baseUses` is unknown. */
function twice({ operation }: Subject): string {
  const once = expectedUses(operation);
  if (once === null || operation.kind !== 'usage') return '';
  return `: ${usesAfter(once, operation)} instead of ${once}`;
}

const drop: Record<OperationKind, Effect> = {
  usage: (subject) =>
    givenUp(subject, {
      clean: 'the store never counts this use.',
      uncertain: 'If it was applied, the store keeps counting the use; if not, the use never counts.',
    }),
  decrease: (subject) =>
    givenUp(subject, {
      clean: 'the store keeps counting the use that it would take back.',
      uncertain: 'If it was applied, the use stays taken back; if not, the store keeps counting it.',
    }),
  disable: (subject) =>
    givenUp(subject, {
      clean: `this change does not disable the key. ${sameKey}${stateOf(subject)}.`,
      uncertain: `If it was applied, the key is disabled in the store. ${sameKey}${stateOf(subject)}.`,
    }),
  enable: (subject) =>
    givenUp(subject, {
      clean: 'the key stays as the store has it.',
      uncertain: 'If it was applied and the key was not disabled since, the key stays enabled in the store.',
    }),
  create_coupon: (subject) =>
    givenUp(subject, {
      clean: 'the coupon is not created, and is removed here.',
      uncertain:
        'It is removed here. If it was created, the coupon stays in the store and is listed again from there.',
    }),
  redeem: (subject) =>
    givenUp(subject, {
      clean: 'the store does not count the redemption, and it is removed here.',
      uncertain: 'It is removed here. If it was applied, the store keeps counting the redemption.',
    }),
  void: (subject) =>
    givenUp(subject, {
      clean: 'the store keeps counting the redemption, which stays voided here.',
      uncertain: 'It stays voided here. If it was not applied, the store keeps counting the redemption.',
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
  redeem: () => `${nothingSent} The redemption stays here.`,
  void: () => `${nothingSent} The redemption stays voided here.`,
};

const nothingSent = 'It counts as delivered, and nothing is sent.';

/** A held operation has been read back: if it was applied, the shown count already contains it. */
function countConfirmed({ operation, shown }: Subject): string {
  if (isHeld(operation)) return `${nothingSent} The count stays as the store showed it.`;
  if (shown === null || queueOf[operation.kind] !== 'counter') return nothingSent;
  return `${nothingSent} The known count of the store changes from ${shown.uses} to ${usesAfter(shown.uses, operation)}.`;
}

const effects: Record<Decision, Record<OperationKind, Effect>> = { retry, drop, confirm };

/** A person's decision about an operation: send it again, give it up, or say that it was applied. */
export type Decision = 'retry' | 'drop' | 'confirm';

/** A coupon is searched in the upstream's list before it is created again. For other kinds, a read has shown all it can. */
export function eventOfDecision(
  { kind, progress }: Pick<Operation, 'kind' | 'progress'>,
  decision: Decision,
  at: number,
): OperationEvent {
  if (decision !== 'retry') return { type: decision, at };
  return { type: kind === 'create_coupon' && progress.state !== 'pending' ? 'recheck' : 'retry' };
}

/** Whether a decision is possible in the current state. */
function isOpenTo(operation: Pick<Operation, 'kind' | 'progress'>, decision: Decision): boolean {
  return nextProgress(operation.progress, eventOfDecision(operation, decision, 0)) !== null;
}
