import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  codeOf,
  dataOf,
  eventually,
  hasty,
  startHarness,
  type Agent,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import { every } from '../support/harness/plain-upstream.ts';

/** The path on Debian and its descendants (apt-get install libfaketime). */
const library = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** A wall clock that a test changes while the agent runs; the monotonic clock is not changed. */
class TurnedClock {
  readonly environment: Record<string, string>;
  readonly #file: string;

  constructor({ directory }: AgentHarness) {
    this.#file = join(directory, 'clock');
    this.turn('+0d');
    this.environment = {
      LD_PRELOAD: library ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** An offset from the true time, such as `+15d` or `-2h`. */
  turn(offset: string): void {
    writeFileSync(this.#file, offset);
  }
}

async function standing(agent: Agent, licenseKey: string): Promise<string> {
  const answer = await agent.verify(licenseKey);
  if (answer.status !== 200) return String(codeOf(answer));
  const enabled = dataOf(answer)['enabled'] === true ? 'enabled' : 'disabled';
  return `${answer.headers['latchkey-freshness']}, ${enabled}`;
}

/** The agent sends nothing in the background unless a verdict is stale. */
const quiet = { upstream: { probe: '1h' } };

test.skipIf(library === undefined)(
  'setting the clock back never improves a verdict, while the agent runs or across a restart (needs libfaketime)',
  async () => {
    await using harness = await startHarness({ licenses: ['KEY', 'REFUNDED'], configuration: quiet });
    const clock = new TurnedClock(harness);
    const agent = await harness.startAgent({}, clock.environment);
    harness.upstream.refund('REFUNDED');
    await agent.learn(['KEY', 'REFUNDED']);
    await harness.proxy.become({ kind: 'refuse' });
    const standings: string[] = [];
    for (const offset of ['+0d', '-400d', '+2d', '+0d', '+8d', '-1d', '+15d', '+0d', '-20d']) {
      clock.turn(offset);
      standings.push(`${offset}: ${await standing(agent, 'KEY')}`);
    }
    expect(standings).toEqual([
      '+0d: fresh, enabled',
      '-400d: fresh, enabled',
      '+2d: stale, enabled',
      '+0d: stale, enabled',
      '+8d: grace, enabled',
      '-1d: grace, enabled',
      '+15d: verdict_expired',
      '+0d: verdict_expired',
      '-20d: verdict_expired',
    ]);
    expect(await standing(agent, 'REFUNDED')).toBe('expired, disabled');
    expect((await agent.status()).clock.suspect).toBe(true);

    // A graceful shutdown stores the time; the clock at the next start is far behind it.
    agent.process.signal('SIGTERM');
    await agent.process.ended;
    const successor = await harness.startAgent({}, clock.environment);
    expect(await standing(successor, 'KEY')).toBe('verdict_expired');
    expect(await standing(successor, 'REFUNDED')).toBe('expired, disabled');

    // Only the upstream improves the verdict.
    await harness.proxy.become({ kind: 'pass' });
    await eventually(async () => (await standing(successor, 'KEY')) === 'fresh, enabled');
    expect(await standing(successor, 'REFUNDED')).toMatch(/disabled$/);
  },
);

test.skipIf(library === undefined)(
  'operations wait by elapsed time, not by a clock that was changed (needs libfaketime)',
  async () => {
    await using harness = await startHarness({ licenses: ['KEY'], configuration: quiet });
    const clock = new TurnedClock(harness);
    const agent = await harness.startAgent(hasty, clock.environment);
    await agent.learn(['KEY']);
    await harness.proxy.become({ kind: 'half_open' });
    const before = await agent.change('usage', 'KEY');
    clock.turn('-3d');
    const after = await agent.change('usage', 'KEY');
    expect([before.status, after.status]).toEqual([200, 200]);
    await harness.proxy.become({ kind: 'pass' });
    await agent.atRest();
    expect(harness.upstream.license('KEY').uses).toBe(2);
  },
);

test('an agent stores a time that the upstream has confirmed before it dates anything by it', async () => {
  await using harness = await startHarness({ licenses: ['KEY'], configuration: quiet });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const inSixtyDays = new Date(Date.now() + 60 * 24 * 3_600_000);
  const headers = { 'content-type': 'application/json', date: inSixtyDays.toUTCString() };
  const license = {
    license_key: 'KEY',
    enabled: true,
    uses: 1,
    product_link: 'p',
    buyer_email: 'a@example.com',
  };
  const body = JSON.stringify({ data: { ...license, date: '2026-01-01T00:00:00Z' } });
  const saysSo = { kind: 'replaced', counted: true, status: 200, headers, body } as const;
  harness.upstream.fault = every(saysSo, ({ kind }) => kind === 'usage');
  for (const _ of [1, 2]) await agent.change('usage', 'KEY', { prefer: 'wait=30' });
  await agent.kill();
  const successor = await harness.startAgent();
  const { high_water: reached } = (await successor.status()).clock;
  expect(Date.parse(reached)).toBeGreaterThan(inSixtyDays.getTime() - 1_000);
});
