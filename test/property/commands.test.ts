import {
  array,
  assert,
  asyncProperty,
  boolean,
  constantFrom,
  integer,
  oneof,
  record,
  type Arbitrary,
} from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { License } from '../../src/domain/license.ts';
import type { QueueName } from '../../src/domain/outbox/operation.ts';
import type { Ambiguous, Applied, NotApplied, NotAppliedReason } from '../../src/domain/outbox/outcome.ts';
import { createAgent, lost, minute, no, type AgentHarness } from '../support/harness/service-harness.ts';
import type { Decision } from '../../src/domain/outbox/explanation.ts';
import type { SyncPolicy } from '../../src/service/outbox/queue.ts';

type Said =
  | { kind: 'says'; uses: number; enabled: boolean }
  | { kind: 'lost' }
  | { kind: 'no'; reason: NotAppliedReason };
type Act =
  | { act: 'change'; trigger: 'usage' | 'decrease' | 'enable' | 'disable' }
  | { act: 'plan'; queue: QueueName; justRead: boolean }
  | { act: 'answer'; said: Said; overlapped: boolean }
  | { act: 'read'; said: Said; agoMs: number }
  | { act: 'decide'; which: number; decision: Decision }
  | { act: 'pass'; ms: number }
  | { act: 'endOutage' | 'retryNow' | 'pruneOperations' | 'restart' };

const queue = constantFrom<QueueName>('counter', 'state');
const reasons: NotAppliedReason[] = [
  'unreachable',
  'refused',
  'missing',
  'unauthorized',
  'throttled',
  'rejected',
];
const triggers = ['usage', 'usage', 'decrease', 'enable', 'disable'] as const;
const says = record({
  kind: constantFrom('says' as const),
  uses: integer({ min: -1, max: 9 }),
  enabled: boolean(),
});
const said: Arbitrary<Said> = oneof(
  { arbitrary: says, weight: 3 },
  constantFrom<Said>({ kind: 'lost' }),
  constantFrom(...reasons).map((reason): Said => ({ kind: 'no', reason })),
);
const act: Arbitrary<Act> = oneof(
  {
    arbitrary: record({ act: constantFrom('change' as const), trigger: constantFrom(...triggers) }),
    weight: 2,
  },
  { arbitrary: record({ act: constantFrom('plan' as const), queue, justRead: boolean() }), weight: 3 },
  { arbitrary: record({ act: constantFrom('answer' as const), said, overlapped: boolean() }), weight: 3 },
  record({ act: constantFrom('read' as const), said, agoMs: integer({ min: 0, max: 2000 }) }),
  record({
    act: constantFrom('decide' as const),
    which: integer({ min: 0, max: 5 }),
    decision: constantFrom<Decision>('retry', 'drop', 'confirm'),
  }),
  record({ act: constantFrom('pass' as const), ms: constantFrom(1, 1000, minute) }),
  constantFrom<Act>(
    { act: 'endOutage' },
    { act: 'retryNow' },
    { act: 'pruneOperations' },
    { act: 'restart' },
  ),
);

// By itself an array is seldom longer than ten: too few to come to an answer.
const acts = array(act, { maxLength: 40, size: 'max' });
let answers = 0;

function outcomeOf(agent: AgentHarness, what: Said): Applied<License> | NotApplied | Ambiguous {
  if (what.kind === 'says') return agent.says(what.uses, what);
  return what.kind === 'lost' ? lost : no(what.reason);
}

/** Carries out an action if it is possible. */
async function perform(agent: AgentHarness, one: Exclude<Act, { act: 'change' }>): Promise<void> {
  const { operations } = agent.store;
  switch (one.act) {
    case 'plan':
      await agent.plan(one.queue, one);
      return;
    case 'answer': {
      const [flying] = operations.withState('in_flight');
      if (flying === undefined) return;
      await agent.answer(flying, outcomeOf(agent, one.said), one);
      answers += 1;
      return;
    }
    case 'read': {
      // A read has both queues to itself.
      const isBusy = operations.depth().in_flight > 0;
      const sentAt = agent.monotonic - one.agoMs;
      if (!isBusy) await agent.read(outcomeOf(agent, one.said), { sentAt });
      return;
    }
    case 'decide': {
      const operationId = operations.list(null, { limit: 1, offset: one.which })[0]?.id ?? 'none';
      await agent.writer.write('decideOperation', { operationId, decision: one.decision });
      return;
    }
    case 'pass':
      agent.pass(one.ms);
      return;
    case 'restart':
      await agent.restart();
      return;
    case 'pruneOperations':
      await agent.writer.write('pruneOperations', { removalTime: agent.now, limit: 2 });
      return;
    case 'endOutage':
    case 'retryNow':
      await agent.writer.write(one.act, {});
      return;
    default:
      one satisfies never;
  }
}

describe('a key on an agent, after any commands and responses in any order', () => {
  const writers = constantFrom<SyncPolicy['writers']>('single', 'many');
  const onUncertain = constantFrom<SyncPolicy['onUncertain']>('infer', 'hold');

  it('a key shows the upstream’s last response with the waiting changes, keeps its queues in order, and loses no change', async () => {
    await assert(
      asyncProperty(record({ writers, onUncertain }), acts, async (policy, all) => {
        await using agent = await createAgent({ uses: 3 }, policy);
        const recorded: string[] = [];
        for (const one of all) {
          if (one.act === 'change') {
            const changed = await agent.change(one.trigger);
            if (changed.ok && changed.value.operationId !== null) recorded.push(changed.value.operationId);
          } else await perform(agent, one);
          agent.check();
        }
        expect(agent.local.uses).toBeGreaterThanOrEqual(0);
        expect(recorded.filter((id) => agent.store.operations.get(id) === null)).toEqual([]);
      }),
      { numRuns: 60 },
    );
    expect(answers).toBeGreaterThan(10);
  });
});
