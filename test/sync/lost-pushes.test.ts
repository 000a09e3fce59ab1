import { describe, expect, it } from 'vitest';
import type { Operation } from '../../src/domain/outbox/operation.ts';
import { logResumed } from '../../src/sync/batch-push.ts';
import { minute, startPushingHarness } from '../support/harness/sync-harness.ts';

const dayMs = 86_400_000;

type Harness = Awaited<ReturnType<typeof startPushingHarness>>;

/** Uses the key once, and returns when it was delivered. */
async function deliver(harness: Harness): Promise<number> {
  await harness.change('KEY', 'usage');
  await harness.time.advance(minute);
  return Math.max(...[...harness.store.operations.withState('delivered')].map(finishedAt));
}

function finishedAt({ progress }: { progress: object }): number {
  return 'finishedAt' in progress ? Number(progress.finishedAt) : 0;
}

/** Dates the operation of a push as if it had been delivered earlier. */
function age(harness: Harness, seq: number, days: number): void {
  const productId = harness.store.operations.head('KEY', 'counter')?.productId ?? productOf(harness);
  for (const operation of ofPush(harness, productId, seq)) {
    const at = finishedAt(operation) - days * dayMs;
    harness.store.operations.put({ ...operation, progress: { state: 'delivered', finishedAt: at } });
  }
}

function ofPush({ store: { operations } }: Harness, productId: string, seq: number): Operation[] {
  const later = new Set(operations.pushedAfter(productId, seq).map(({ id }) => id));
  return operations.pushedAfter(productId, seq - 1).filter(({ id }) => !later.has(id));
}

function productOf({ store }: Harness): string {
  const [operation] = store.operations.withState('delivered');
  return operation?.productId ?? '';
}

function dayOf(at: number): number {
  return at - (at % dayMs);
}

async function prune({ writer, time }: Harness, limits: { keptMs?: number; maxFinished?: number } = {}) {
  const removalTime = time.clock().now();
  await writer.write('pruneOperations', { removalTime, limit: 500, ...limits });
}

/** The upstream is restored from a backup of before the first push. */
function restore({ latchkey, vendor }: Harness): void {
  latchkey.rows.clear();
  latchkey.seen.clear();
  latchkey.epoch = '0123456789abcdef-2';
  const license = vendor.licenses.get('KEY');
  if (license !== undefined) latchkey.set('KEY', { ...license, uses: 0 });
}

function usesOf({ vendor }: Harness): number | undefined {
  return vendor.licenses.get('KEY')?.uses;
}

describe('an upstream that was restored from an old backup', () => {
  it('gets the changes again that are not too old; the others are counted, with their days', async () => {
    using harness = await startPushingHarness(['KEY']);
    const at = await deliver(harness);
    await deliver(harness);
    await deliver(harness);
    age(harness, 1, 45);
    age(harness, 2, 29.5);
    await prune(harness);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2 });
    const productId = productOf(harness);
    expect(harness.store.pushes.lost(productId)).toBeNull();
    restore(harness);
    await harness.change('KEY', 'usage');
    await harness.time.advance(2 * minute);
    expect(usesOf(harness)).toBe(2);
    expect(harness.store.pushes.lost(productId)).toMatchObject({
      operations: 2,
      firstAt: dayOf(at - 45 * dayMs),
      lastAt: dayOf(at + minute - 29.5 * dayMs),
    });
  });

  it('the same loss is not counted again by a second restore', async () => {
    using harness = await startPushingHarness(['KEY']);
    await deliver(harness);
    await deliver(harness);
    age(harness, 1, 29.5);
    restore(harness);
    await harness.change('KEY', 'usage');
    await harness.time.advance(2 * minute);
    restore(harness);
    await harness.change('KEY', 'usage');
    await harness.time.advance(2 * minute);
    expect(harness.store.pushes.lost(productOf(harness))).toMatchObject({ operations: 1 });
    expect(usesOf(harness)).toBe(3);
  });

  it('an upstream that only forgot this agent has lost nothing, and counts nothing twice', async () => {
    using harness = await startPushingHarness(['KEY']);
    await deliver(harness);
    await deliver(harness);
    age(harness, 1, 45);
    await prune(harness);
    // Of the outcomes of operations, an authority keeps those of the last 30 days.
    harness.latchkey.rows.clear();
    await harness.change('KEY', 'usage');
    await harness.time.advance(2 * minute);
    expect(usesOf(harness)).toBe(3);
    expect(harness.store.pushes.lost(productOf(harness))).toBeNull();
  });
});

describe('finished changes that were pushed', () => {
  it('changes are kept for sync.keep, and at most so many', async () => {
    using harness = await startPushingHarness(['KEY']);
    await deliver(harness);
    await deliver(harness);
    await deliver(harness);
    age(harness, 1, 8);
    age(harness, 2, 3);
    await prune(harness);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 3 });
    await prune(harness, { keptMs: 5 * dayMs });
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 2 });
    await prune(harness, { maxFinished: 1 });
    const productId = productOf(harness);
    expect(ofPush(harness, productId, 2)).toEqual([]);
    expect(ofPush(harness, productId, 3)).toHaveLength(1);
  });

  it('with the plain protocol, changes are kept for 7 days', async () => {
    using harness = await startPushingHarness(['KEY']);
    await deliver(harness);
    age(harness, 1, 8);
    await harness.sync.chooseProtocol('plain', { actor: null, requestId: null, idempotency: null });
    await prune(harness);
    expect(harness.store.operations.depth()).toMatchObject({ delivered: 0 });
  });

  it('a loss is shown for 30 days', async () => {
    using harness = await startPushingHarness(['KEY']);
    await deliver(harness);
    const productId = productOf(harness);
    const now = harness.time.clock().now();
    const loss = { operations: 3, firstAt: 0, lastAt: dayMs };
    harness.store.pushes.addLost(productId, { ...loss, foundAt: now - 29 * dayMs });
    await prune(harness);
    expect(harness.store.pushes.lost(productId)).toMatchObject(loss);
    harness.store.pushes.addLost(productId, { ...loss, foundAt: now - 31 * dayMs });
    await prune(harness);
    expect(harness.store.pushes.lost(productId)).toBeNull();
  });
});

it('the log says how many changes are lost, and from which days', () => {
  const lines: string[] = [];
  const write = (level: string) => (fields: object, text: string) =>
    lines.push(`${level} ${JSON.stringify(fields)} ${text}`);
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const lost = { operations: 7, firstAt: Date.UTC(2026, 0, 2), lastAt: Date.UTC(2026, 0, 4), foundAt: 0 };
  logResumed(log, 'press', { last: 3, repeated: 2, lost });
  expect(lines).toEqual([
    'warn {"product":"press","last":3,"repeated":2} pushes continue from another number',
    expect.stringMatching(
      /^error \{"product":"press","operations":7,"from":"2026-01-02.*","to":"2026-01-04.*".*too old to be sent again$/,
    ),
  ]);
});
