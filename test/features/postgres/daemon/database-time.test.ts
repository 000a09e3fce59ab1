import { expect, test } from 'vitest';
import { machineTime, type TimeSource } from '../../../../src/daemon/system/clock.ts';
import { DatabaseTime } from '../../../../src/features/postgres/daemon/database-writer.ts';
import { sellOne, startNode, type AuthorityNode } from '../support/nodes.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';

const hourMs = 3_600_000;

/** A machine whose wall clock is ahead. */
function aheadBy(ms: number): TimeSource {
  const read: TimeSource['read'] = () => {
    const { wall, monotonic } = machineTime.read();
    return { wall: wall + ms, monotonic };
  };
  return { ...machineTime, read };
}

/** A machine and a database with settable clocks. */
function createTime() {
  const machine = { wall: 1_000_000, monotonic: 50 };
  const time = new DatabaseTime({ ...machineTime, read: () => ({ ...machine }) });
  const pass = (ms: number): void => {
    machine.wall += ms;
    machine.monotonic += ms;
  };
  const hear = (now: number): Promise<void> =>
    time.follow({ query: () => Promise.resolve([{ now: String(now) }]) });
  return { machine, time, pass, hear };
}

test('The time is the time of the machine until the database shows another time.', async () => {
  const { time, pass, hear } = createTime();
  expect(time.read()).toEqual({ wall: 1_000_000, monotonic: 50 });
  await hear(1_004_000);
  expect(time.read().wall).toBe(1_000_000);
  await hear(1_006_000);
  pass(100);
  expect(time.read()).toEqual({ wall: 1_006_100, monotonic: 150 });
  await hear(1_000_200);
  expect(time.read().wall).toBe(1_000_100);
});

test('Turning the clock of the machine does not change the time of a node.', async () => {
  const { time, machine, pass, hear } = createTime();
  await hear(1_000_000);
  for (const turnedBy of [hourMs, -3 * hourMs]) {
    machine.wall += turnedBy;
    pass(10);
  }
  expect(time.read().wall).toBe(1_000_020);
});

test.skipIf(!hasPostgres)(
  'A node whose clock is ahead does not expire a token early, neither itself nor at another node.',
  async () => {
    await using server = await startPostgres();
    const start = (ms: number): Promise<AuthorityNode> =>
      startNode(server, { schema: 'latchkey' }, { time: aheadBy(ms) });
    const now = async (node: AuthorityNode): Promise<number> => {
      const status = (await (await node.call('/statusz')).json()) as { clock: { now: string } };
      return Date.parse(status.clock.now);
    };
    await using right = await start(0);
    const licenseKey = await sellOne(right);
    const body = { scopes: ['verify'], expires_at: new Date(Date.now() + hourMs).toISOString() };
    const issued = await right.call('/admin/v1/tokens', { body });
    const { token } = ((await issued.json()) as { data: { token: string } }).data;
    const verify = async (node: AuthorityNode): Promise<number> =>
      (await node.call(`/api/v2/license/verify?license_key=${licenseKey}`, { token })).status;
    {
      await using ahead = await start(2 * hourMs);
      expect(await verify(ahead)).toBe(200);
      expect(await now(ahead)).toBeLessThan(Date.now() + hourMs);
    }
    await using next = await start(0);
    expect(await verify(next)).toBe(200);
    expect(await now(next)).toBeLessThan(Date.now() + hourMs);
  },
);
