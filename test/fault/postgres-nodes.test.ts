import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callersDuring, progress } from '../features/postgres/support/callers.ts';
import { startNodes, type Nodes } from '../features/postgres/support/node-processes.ts';
import type { NetworkFault } from '../support/network/fault-proxy.ts';
import { compare, type Ledger } from '../features/postgres/support/ledger.ts';
import { hasPostgres } from '../features/postgres/support/postgres.ts';

/** `npm run test:postgres:full` runs longer and more often than `npm test`. */
const isFull = process.env['LATCHKEY_TEST_FULL'] === '1';
const { calmMs, times, timeout } = isFull
  ? { calmMs: 60_000, times: 20, timeout: 600_000 }
  : { calmMs: 4_000, times: 2, timeout: 300_000 };
const inDoubt = '503 outcome_unknown';

describe.skipIf(!hasPostgres)('four authority nodes with 16 callers each', () => {
  let nodes: Nodes;
  beforeAll(async () => {
    nodes = await startNodes(4);
  });
  afterAll(async () => {
    await nodes?.[Symbol.asyncDispose]();
  });

  async function show(name: string, meanwhile: (ledger: Ledger) => Promise<void>): Promise<Ledger> {
    const ledger = await callersDuring(name, nodes, meanwhile);
    process.stdout.write(`${ledger.summary}\n`);
    await compare(ledger, nodes.database);
    return ledger;
  }

  const of = <Item>(list: readonly Item[], number: number): Item => {
    const item = list[number % list.length];
    if (item === undefined) throw new Error('the list is empty');
    return item;
  };

  test('four nodes count every answered use, and exceed no limit', { timeout }, async () => {
    const ledger = await show('CALM', async () => {
      await sleep(calmMs);
    });
    // Only the key of a request that is still being answered may be in use.
    const wrong = [...ledger.wrong.keys()].filter((what) => what !== '409 idempotency_key_in_use');
    expect(wrong).toEqual([]);
  });

  test('killing one of four nodes loses no answered use and counts none twice', { timeout }, async () => {
    const { wrong } = await show('KILLED', async (ledger) => {
      for (let time = 0; time < times; time += 1) {
        const node = of(nodes.all, time);
        await node.kill();
        await progress(ledger);
        await node.start();
        await progress(ledger);
      }
    });
    expect([...wrong.keys()].join()).toContain('without an answer');
  });

  test('a crash of the database loses no answered use and counts none twice', { timeout }, async () => {
    const { wrong } = await show('STOPPED', async (ledger) => {
      // At least one use must be uncertain, or the test proves nothing.
      for (let time = 0; time < times || !ledger.wrong.has(inDoubt); time += 1) {
        await nodes.server.stop('immediate');
        await nodes.server.start();
        await progress(ledger);
      }
    });
    expect([...wrong.keys()]).toContain(inDoubt);
  });

  const faultsOf = (time: number): readonly NetworkFault[] => [
    { kind: 'reset_on_connect' },
    { kind: 'reset_answer' },
    { kind: 'cut_answer', afterBytes: 1 + ((time * 37) % 400) },
    { kind: 'half_open' },
  ];
  test('cut database connections lose no answered use and count none twice', { timeout }, async () => {
    const { wrong } = await show('CUT', async (ledger) => {
      for (let time = 0; time < times || !ledger.wrong.has(inDoubt); time += 1) {
        for (const [index, fault] of faultsOf(time).entries()) {
          const { network } = of(nodes.all, time + index);
          await network.become(fault);
          await progress(ledger, 50);
          await network.become({ kind: 'pass' });
          network.resetAll();
          await progress(ledger);
        }
      }
    });
    expect([...wrong.keys()]).toContain(inDoubt);
  });

  test(
    'database connections that are cut after a commit lose no answered use and count none twice',
    { timeout },
    async () => {
      await show('COMMITTED', async (ledger) => {
        for (let time = 0; time < times; time += 1) {
          const { network } = of(nodes.all, time);
          const before = network.resetResponses;
          await network.become({ kind: 'reset_answer', containing: 'COMMIT' });
          await expect.poll(() => network.resetResponses > before, { interval: 5 }).toBe(true);
          await network.become({ kind: 'pass' });
          await progress(ledger);
        }
      });
    },
  );
});
