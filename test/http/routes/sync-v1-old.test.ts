import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  newId,
  openAuthority,
  usage,
  type SyncedAuthority,
} from '../../support/harness/sync-server-harness.ts';

const day = 86_400_000;

let authority: SyncedAuthority;
beforeAll(async () => {
  authority = await openAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());

function newAgent(): string {
  return newId().replaceAll('-', '');
}

/** Removes what is older than an instant, in steps. */
async function prune(before: number): Promise<void> {
  for (let step = 0; step < 100; step += 1) {
    const pruned = await authority.opened.app.writer.write('pruneSync', { before, limit: 10 });
    if (!pruned.ok) throw new Error(pruned.problem.detail);
    if (pruned.value.removed < 10) return;
  }
  throw new Error('pruning does not end');
}

test('a follower that was silent for almost a month begins anew, because its keys may be forgotten', async () => {
  const agent = newAgent();
  const { epoch, cursor } = await authority.changes({ agent, follow: ['KEY-1'] });
  await authority.time.advance(28 * day);
  const told = await authority.changes({ agent, epoch, cursor });
  expect(told.reset).toBeUndefined();
  await authority.time.advance(29.98 * day);
  expect(await authority.changes({ agent, epoch, cursor: told.cursor })).toMatchObject({ reset: true });
});

test('old outcomes and the keys of silent followers are removed, and the last push of an agent stays', async () => {
  const agent = newAgent();
  const before = (await authority.uses('KEY-1')) ?? 0;
  const ids = Array.from({ length: 25 }, () => newId());
  const operations = ids.map((id) => usage('KEY-1', id));
  const reply = await authority.pushed(1, operations, { agent });
  await authority.changes({ agent, follow: ['KEY-1', 'KEY-2', 'KEY-3'] });
  expect(new Set((await authority.known(ids)).map(({ outcome }) => outcome))).toEqual(new Set(['applied']));
  const end = Date.now() + 400 * day;
  await prune(end);
  expect(new Set((await authority.known(ids)).map(({ outcome }) => outcome))).toEqual(new Set(['too_old']));
  // The clock of an agent may be a day ahead: what it calls newer may be as old.
  expect(await authority.known([newId(end + day - 1), newId(end + day)])).toMatchObject([
    { outcome: 'too_old' },
    { outcome: 'not_seen' },
  ]);
  const { sync } = authority.opened.app.reader;
  const tenant = { accountId: 'default', productKey: null };
  const rows = await sync.list({ tenant }, { limit: 100, offset: 0 });
  expect(rows.map(({ followed }) => followed)).toEqual(rows.map(() => 0));
  expect(await authority.pushed(1, operations, { agent })).toEqual(reply);
  await authority.pushed(2, [usage()], { agent });
  expect(await authority.uses('KEY-1')).toBe(before + 26);
});

test('the outcome of an operation is kept for as long after an agent has sent it again as after the first time', async () => {
  const agent = newAgent();
  const before = (await authority.uses('KEY-2')) ?? 0;
  const [resent, repeated] = [newId(), newId()];
  await authority.pushed(1, [usage('KEY-2', resent)], { agent });
  const push = [usage('KEY-2', repeated)];
  await authority.pushed(2, push, { agent });
  await waitUntilAfter(Date.now());
  const end = Date.now();
  // Its answer was lost.
  await authority.pushed(2, push, { agent });
  await authority.pushed(3, [usage('KEY-2', resent)], { agent });
  await prune(end);
  expect(await authority.known([resent, repeated])).toMatchObject([
    { outcome: 'applied' },
    { outcome: 'applied' },
  ]);
  await authority.pushed(1, [usage('KEY-2', resent), usage('KEY-2', repeated)], { agent: newAgent() });
  expect(await authority.uses('KEY-2')).toBe(before + 2);
});

async function waitUntilAfter(instant: number): Promise<void> {
  while (Date.now() <= instant) await setTimeout(1);
}
