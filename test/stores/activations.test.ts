import { expect, test } from 'vitest';
import { activatedKey, type ActivationAttempt } from '../../src/domain/agent/activated-key.ts';
import type { License } from '../../src/domain/license.ts';
import { notApplied, type Outcome } from '../../src/domain/outbox/outcome.ts';
import type { Log } from '../../src/service/ports.ts';
import { Activations } from '../../src/stores/activations.ts';
import type { Activated, StoreClient } from '../../src/stores/store.ts';
import { KeyedMutex } from '../../src/sync/waiting.ts';
import { createAgent, key, lost, productKey, type AgentHarness } from '../support/harness/service-harness.ts';

/* A store whose answers a test chooses, and an agent that activates license keys at it. */

const laptop = { productId: productKey, licenseKey: key, name: 'Laptop' };
const never = new AbortController().signal;

function activated(id: string): Activated {
  const license = {
    licenseKey: activatedKey(key, id),
    productKey: '',
    buyerEmail: '',
    uses: 0,
    enabled: true,
  };
  return {
    activationId: id,
    licenses: [{ ...license, createdAt: 0 }],
    answer: { status: 200, body: { instance: { id } } },
  };
}

type Scene = AsyncDisposable & {
  agent: AgentHarness;
  activations: Activations;
  /** The attempts that reached the store. */
  sent: ActivationAttempt[];
  warnings: string[];
  answer: () => Promise<Outcome<Activated>>;
  find: ReturnType<NonNullable<StoreClient['findsActivations']>>;
  isAdmitted: boolean;
  learned: string[];
  learn: (licenseKey: string) => Promise<void>;
};

async function scene(): Promise<Scene> {
  const agent = await createAgent();
  const applied = <Value>(value: Value): Outcome<Value> => ({
    outcome: 'applied',
    value,
    confirmedAt: agent.now,
    isCached: false,
  });
  let number = 0;
  const it: Omit<Scene, 'activations'> = {
    agent,
    sent: [],
    warnings: [],
    learned: [],
    learn: async (licenseKey) => void it.learned.push(licenseKey),
    answer: async () => applied(activated(`a-${(number += 1)}`)),
    find: null,
    isAdmitted: true,
    [Symbol.asyncDispose]: () => agent[Symbol.asyncDispose](),
  };
  const log: Pick<Log, 'warn'> = { warn: (_, message) => void it.warnings.push(message) };
  const activations = new Activations({
    reader: agent.store,
    writer: agent.writer,
    clock: { now: () => agent.now, monotonic: () => agent.monotonic },
    inDoubtMs: () => 10_000,
    log,
    lifetime: never,
    client: {
      activate: async (_, attempt) => {
        // It is stored before a byte leaves.
        expect(agent.store.activationAttempts.get(key, attempt.name)).toEqual(attempt);
        it.sent.push(attempt);
        return await it.answer();
      },
      findsActivations: () => it.find,
    },
    limiter: {
      admit: async () => (it.isAdmitted ? { admitted: true } : { admitted: false, detail: 'away' }),
      observe: () => undefined,
    },
    fetcher: { learnLicense: (_, { licenseKey }: License) => it.learn(licenseKey) },
    mutex: new KeyedMutex(),
  });
  return Object.assign(it, { activations });
}

function idIn(outcome: Outcome<Activated>): string | null {
  return outcome.outcome === 'applied' ? outcome.value.activationId : outcome.outcome;
}

test('an activation is recorded, and nothing of it stays open', async () => {
  await using it = await scene();
  expect(idIn(await it.activations.activate(laptop, never))).toBe('a-1');
  expect(it.learned).toEqual([activatedKey(key, 'a-1')]);
  expect(it.agent.store.activationAttempts.get(key, 'Laptop')).toBeNull();
  // Each request is another activation, as at the store.
  expect(idIn(await it.activations.activate(laptop, never))).toBe('a-2');
});

test('after a lost answer the store is asked what the activation has made, and no second one is sent', async () => {
  await using it = await scene();
  it.answer = async () => lost;
  expect(idIn(await it.activations.activate(laptop, never))).toBe('ambiguous');
  it.find = async (_, attempt) => {
    expect(attempt).toEqual(it.sent[0]);
    return { outcome: 'applied', value: activated('made'), confirmedAt: it.agent.now, isCached: false };
  };
  expect(idIn(await it.activations.activate(laptop, never))).toBe('made');
  expect(it.sent).toHaveLength(1);
  expect(it.learned).toEqual([activatedKey(key, 'made')]);
  expect(it.agent.store.activationAttempts.get(key, 'Laptop')).toBeNull();
});

test('while the store cannot say what a lost activation has made, none is sent', async () => {
  await using it = await scene();
  const { answer } = it;
  it.answer = async () => lost;
  await it.activations.activate(laptop, never);
  it.answer = answer;
  it.find = async () => notApplied('throttled', 'HTTP 429');
  expect(idIn(await it.activations.activate(laptop, never))).toBe('not_applied');
  expect(it.sent).toHaveLength(1);
  // It has made nothing yet, or nothing that can be told from others.
  it.find = async () => ({ outcome: 'applied', value: null, confirmedAt: it.agent.now, isCached: false });
  it.agent.pass(9_999);
  expect(idIn(await it.activations.activate(laptop, never))).toBe('not_applied');
  expect(it.sent).toHaveLength(1);
  it.agent.pass(1);
  expect(idIn(await it.activations.activate(laptop, never))).toBe('a-1');
  expect(it.warnings).toEqual([expect.stringContaining('may have taken a seat')]);
});

test('a store that does not say it gets the activation again, and the log warns of the seat', async () => {
  await using it = await scene();
  const { answer } = it;
  it.answer = async () => lost;
  await it.activations.activate(laptop, never);
  it.answer = answer;
  expect(idIn(await it.activations.activate({ ...laptop, name: 'Phone' }, never))).toBe('a-1');
  expect(it.warnings).toEqual([]);
  expect(idIn(await it.activations.activate(laptop, never))).toBe('a-2');
  expect(it.warnings).toEqual([expect.stringContaining('may have taken a seat')]);
});

test('what certainly made no activation leaves nothing open', async () => {
  await using it = await scene();
  it.answer = async () => notApplied('unreachable', 'connection refused');
  await it.activations.activate(laptop, never);
  expect(it.agent.store.activationAttempts.get(key, 'Laptop')).toBeNull();
});

test('while the upstream is away nothing is sent, and an earlier attempt stays open', async () => {
  await using it = await scene();
  it.answer = async () => lost;
  await it.activations.activate(laptop, never);
  it.isAdmitted = false;
  expect(idIn(await it.activations.activate(laptop, never))).toBe('not_applied');
  expect(it.sent).toHaveLength(1);
  expect(it.agent.store.activationAttempts.get(key, 'Laptop')).not.toBeNull();
});

test('a caller that has left before the answer gets the activation at its next request', async () => {
  await using it = await scene();
  const caller = new AbortController();
  const { answer } = it;
  it.answer = async () => {
    caller.abort();
    return await answer();
  };
  expect(idIn(await it.activations.activate(laptop, caller.signal))).toBe('a-1');
  expect(it.agent.store.activationAttempts.get(key, 'Laptop')).toMatchObject({ activationId: 'a-1' });
  await expect(it.activations.activate(laptop, caller.signal)).rejects.toThrow('aborted');
  expect(it.sent).toHaveLength(1);
});

test('activations of one license key and name run one after the other', async () => {
  await using it = await scene();
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { answer } = it;
  it.answer = async () => {
    await (it.sent.length === 1 ? first : second).promise;
    return await answer();
  };
  const both = [it.activations.activate(laptop, never), it.activations.activate(laptop, never)];
  await new Promise(setImmediate);
  expect(it.sent).toHaveLength(1);
  first.resolve();
  await both[0];
  await new Promise(setImmediate);
  expect(it.sent).toHaveLength(2);
  second.resolve();
  expect((await Promise.all(both)).map(idIn)).toEqual(['a-1', 'a-2']);
});

test('a process that ends while it records an activation leaves its id to the next', async () => {
  await using it = await scene();
  it.learn = async () => {
    throw new Error('the process ends');
  };
  await expect(it.activations.activate(laptop, never)).rejects.toThrow('the process ends');
  expect(it.agent.store.activationAttempts.get(key, 'Laptop')).toMatchObject({ activationId: 'a-1' });
});
