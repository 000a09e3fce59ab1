import { describe, expect, test } from 'vitest';
import {
  eventOfDecision,
  type Decision,
  explain,
  type Explanation,
  type Surroundings,
} from '../../../src/domain/outbox/explanation.ts';
import {
  type Operation,
  type OperationKind,
  type OperationProgress,
  type OperationState,
  nextProgress,
} from '../../../src/domain/outbox/operation.ts';
import { buildOperation } from '../../support/builders/operation-builders.ts';

const minute = 60_000;

/** Every state in each of its forms: one that is missing does not compile. */
const progresses: { [State in OperationState]: (OperationProgress & { state: State })[] } = {
  pending: [
    { state: 'pending', maybeApplied: false, unanswered: false },
    { state: 'pending', maybeApplied: true, unanswered: false },
  ],
  in_flight: [{ state: 'in_flight', maybeApplied: false, unanswered: false, baseUses: 4, sentAt: 0 }],
  uncertain: [
    { state: 'uncertain', maybeApplied: false, baseUses: 4, held: false },
    { state: 'uncertain', maybeApplied: true, baseUses: null, held: false },
    { state: 'uncertain', maybeApplied: false, baseUses: 4, held: true },
  ],
  delivered: [{ state: 'delivered', finishedAt: 0 }],
  inferred: [{ state: 'inferred', finishedAt: 0 }],
  conflicted: [{ state: 'conflicted' }],
  dead: [
    { state: 'dead', cause: 'refused' },
    { state: 'dead', cause: 'missing' },
  ],
  cancelled: [{ state: 'cancelled', finishedAt: 0 }],
  dropped: [{ state: 'dropped', finishedAt: 0 }],
};

const kinds: Record<OperationKind, true> = {
  usage: true,
  decrease: true,
  disable: true,
  enable: true,
  create_coupon: true,
  redeem: true,
  void: true,
};

const operation = (kind: OperationKind, progress: OperationProgress): Operation =>
  buildOperation({ kind, attempts: 1, progress });

const alone: Surroundings = {
  now: 0,
  reconcileAt: null,
  isHead: true,
  blocker: null,
  isLatchkey: true,
  shown: { uses: 5, enabled: true, at: 0 },
};

function told(
  kind: OperationKind,
  progress: OperationProgress,
  around: Partial<Surroundings> = {},
): Explanation {
  return explain(operation(kind, progress), { ...alone, ...around });
}

const all = (Object.keys(kinds) as OperationKind[]).flatMap((kind) =>
  Object.values(progresses)
    .flat()
    .map((progress) => [kind, progress.state, JSON.stringify(progress), progress] as const),
);

describe.each(all)('%s, %s %s', (kind, _state, _form, progress) => {
  test('has a meaning, and tells of each decision exactly if it can be made', () => {
    const { meaning, decisions } = told(kind, progress);
    const sentences = [meaning, ...Object.values(decisions).filter((effect) => effect !== null)];
    for (const sentence of sentences) expect(sentence).toMatch(/^[A-Z](?!.*(?:undefined|null|NaN)).*\.$/);
    for (const decision of ['retry', 'drop', 'confirm'] as const) {
      const isOpen = nextProgress(progress, eventOfDecision({ kind, progress }, decision, 0)) !== null;
      expect([decision, decisions[decision] !== null]).toEqual([decision, isOpen]);
    }
  });

  test('waits for something exactly while it goes on by itself', () => {
    const goesOn = progress.state === 'pending' || (progress.state === 'uncertain' && !progress.held);
    expect(told(kind, progress).waits.length > 0).toBe(goesOn);
  });
});

const held = progresses.uncertain[2] as OperationProgress;
const refused = progresses.dead[0] as OperationProgress;
const conflicted = progresses.conflicted[0] as OperationProgress;

test.each<[OperationKind, OperationProgress, Decision, string]>([
  [
    'usage',
    held,
    'retry',
    'It is sent again. If it was applied before, the use counts twice: 6 instead of 5. It ends inferred.',
  ],
  [
    'usage',
    held,
    'drop',
    'It is not sent again. If it was applied, the store keeps counting the use; if not, the use never counts.',
  ],
  [
    'usage',
    held,
    'confirm',
    'It counts as delivered, and nothing is sent. The count stays as the store showed it.',
  ],
  [
    'usage',
    refused,
    'confirm',
    'It counts as delivered, and nothing is sent. The known count of the store changes from 5 to 6.',
  ],
  ['usage', refused, 'drop', 'It is not sent: the store never counts this use.'],
  ['decrease', refused, 'retry', 'It is sent again, and takes one use back if the store accepts it now.'],
  [
    'disable',
    refused,
    'drop',
    'It is not sent: this change does not disable the key. Callers see the key as the store last showed it, enabled.',
  ],
  ['enable', held, 'retry', 'It is sent again. If the key was disabled in the store since, that is undone.'],
  [
    'enable',
    conflicted,
    'retry',
    'It is sent again, and enables the key, even if it was disabled in the store since.',
  ],
  [
    'create_coupon',
    refused,
    'retry',
    'Its code is looked for in the store first, and the coupon is created only if the code is free: never twice.',
  ],
])('the explanation of a %s in state %j says what %s does', (kind, progress, decision, effect) => {
  expect(told(kind, progress).decisions[decision]).toBe(effect);
});

test.each<[OperationKind, OperationProgress, RegExp]>([
  [
    'usage',
    { state: 'uncertain', maybeApplied: false, baseUses: 4, held: false },
    /Latchkey reads the count in the store/,
  ],
  ['enable', conflicted, /a revocation wins\. Nothing more happens until a person decides\.$/],
  ['usage', { state: 'dead', cause: 'missing' }, /It is sent if the store knows the key again\.$/],
  [
    'usage',
    { state: 'pending', maybeApplied: false, unanswered: false },
    /^The attempt failed and the store applied nothing\./,
  ],
  [
    'disable',
    { state: 'pending', maybeApplied: true, unanswered: false },
    /Disabling a key twice does no harm/,
  ],
])('the explanation of a %s in state %j says what the state means', (kind, progress, meaning) => {
  expect(told(kind, progress).meaning).toMatch(meaning);
});

test('an explanation shows the expected count if the operation was sent on a known count', () => {
  expect(told('usage', held)).toMatchObject({ expectedUses: 5, shown: { uses: 5, enabled: true } });
  expect(told('decrease', held).expectedUses).toBe(3);
  expect(told('enable', held).expectedUses).toBeNull();
  expect(told('usage', { state: 'pending', maybeApplied: false, unanswered: false }).expectedUses).toBeNull();
});

test('the explanation of a retry says so if the operation is not sent at once', () => {
  const waiting: OperationProgress = { state: 'pending', maybeApplied: false, unanswered: false };
  const retried = (around: Partial<Surroundings>) => told('usage', waiting, around).decisions.retry;
  expect(retried({})).toMatch(/^It is tried again at once,/);
  const pausing = explain({ ...operation('usage', waiting), nextAt: minute }, alone);
  expect(pausing.decisions.retry).toMatch(/^It is tried again at once,/);
  const stuck: Partial<Surroundings>[] = [
    { blocker: { cause: 'retry_after', until: 1000 } },
    { blocker: { cause: 'paused' } },
    { reconcileAt: 1000 },
    { isHead: false },
  ];
  for (const around of stuck) {
    expect(retried(around)).toMatch(/^It is tried again as soon as the reason for the wait is over,/);
  }
});

describe('it waits', () => {
  const waiting: OperationProgress = { state: 'pending', maybeApplied: false, unanswered: false };
  const causes = (around: Partial<Surroundings>): unknown =>
    told('usage', waiting, around).waits.map(({ cause, leftMs }) => [cause, leftMs]);

  test('for its turn, when nothing holds it up', () => {
    expect(causes({})).toEqual([['turn', null]]);
  });

  test('for everything that holds it up, each with the time that is left', () => {
    expect(
      causes({
        now: minute,
        blocker: { cause: 'upstream_away', until: 0 },
        reconcileAt: 2 * minute,
        isHead: false,
      }),
    ).toEqual([
      ['upstream_away', 0],
      ['reconcile_delay', minute],
      ['behind', null],
    ]);
    expect(causes({ blocker: { cause: 'paused' } })).toEqual([['paused', null]]);
  });

  test('for its backoff, when it is the first of its queue', () => {
    const { waits } = explain({ ...operation('usage', waiting), nextAt: minute }, alone);
    expect(waits).toMatchObject([{ cause: 'backoff', leftMs: minute }]);
    const delayed = explain(
      { ...operation('usage', waiting), nextAt: minute },
      { ...alone, reconcileAt: minute },
    );
    expect(delayed.waits.map(({ cause }) => cause)).toEqual(['reconcile_delay']);
  });
});
