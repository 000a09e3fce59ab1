import type { Decision } from './decision.ts';
import { effectOf, type ShownLicense } from './decision-effect.ts';
import { countAfter } from '../license.ts';
import {
  isHeld,
  type Operation,
  type OperationKind,
  type OperationProgress,
  type OperationState,
} from './operation.ts';

/*
 * How an operation stands, for the person who looks at it: what its state means, what it waits for, the counts
 * to compare, and what each decision would do.
 */

/** What holds up everything that would go up under a credential; `until` by `Clock.steady`. */
export type Obstacle =
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
  'fence',
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

export type Standing = {
  meaning: string;
  waits: readonly OperationWait[];
  /** The count that the upstream would show if this operation alone was applied to the one it was sent on. */
  expectedUses: number | null;
  shown: ShownLicense | null;
  /** What each decision would do; null: it cannot be made. */
  decisions: Readonly<Record<Decision, string | null>>;
};

/** What there is to know of an operation besides itself. Instants by `Clock.steady`. */
export type Surroundings = {
  now: number;
  /** Until when an earlier request of its lane may still be on its way; null when none is. */
  fencedUntil: number | null;
  /** It is the first of its lane that is unfinished and not held. */
  isHead: boolean;
  obstacle: Obstacle | null;
  shown: ShownLicense | null;
};

/** Tells how an operation stands. */
export function standingOf(operation: Operation, surroundings: Surroundings): Standing {
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
  pending({ kind, attempts }, { doubtful }) {
    if (doubtful && kind === 'disable')
      return 'An answer to it was lost. To disable a key twice does no harm, so it is sent again.';
    if (doubtful)
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
  fence: 'An earlier attempt may still be on its way (sync.fence)',
  behind: 'Earlier changes of the same thing go first',
  backoff: 'A pause after an attempt that brought nothing',
  turn: 'It is due, and is next as soon as sync.rate allows',
};

function waitsOf(operation: Operation, surroundings: Surroundings): readonly OperationWait[] {
  const { progress, nextAt } = operation;
  const isOnItsWay = progress.state === 'pending' || (progress.state === 'uncertain' && !isHeld(operation));
  if (!isOnItsWay) return [];
  const { now, fencedUntil, isHead, obstacle } = surroundings;
  const waits: OperationWait[] = [];
  const wait = (cause: OperationWait['cause'], until: number | null = null): void => {
    waits.push({ cause, detail: causes[cause], leftMs: until === null ? null : Math.max(0, until - now) });
  };
  if (obstacle !== null) wait(obstacle.cause, 'until' in obstacle ? obstacle.until : null);
  if (fencedUntil !== null) wait('fence', fencedUntil);
  if (!isHead) wait('behind');
  else if (fencedUntil === null && nextAt !== null && nextAt > now) wait('backoff', nextAt);
  if (waits.length === 0) wait('turn');
  return waits;
}
