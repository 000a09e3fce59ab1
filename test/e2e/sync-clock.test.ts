import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  codeOf,
  dataOf,
  eventually,
  hasty,
  productKey,
  startHarness,
  type Agent,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import { operate } from '../support/app/people.ts';
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

const dayMs = 86_400_000;

/** The store answers about this key with a wrong `Date`. */
function misdate({ upstream }: AgentHarness, licenseKey: string, date: Date): void {
  const headers = { 'content-type': 'application/json', date: date.toUTCString() };
  const license = {
    license_key: licenseKey,
    enabled: true,
    uses: 0,
    product_link: productKey,
    buyer_email: 'a@example.com',
    date: '2026-01-01T00:00:00Z',
  };
  const body = JSON.stringify({ data: license });
  const saysSo = { kind: 'replaced', counted: true, status: 200, headers, body } as const;
  upstream.fault = every(saysSo, ({ licenseKey: key }) => key === licenseKey);
}

test.each([
  ['20 days ahead', new Date(Date.now() + 20 * dayMs)],
  ['in 2999', new Date('2999-01-01T00:00:00Z')],
  ['in 1970', new Date(0)],
])('wrong dates of the store expire no license and stop no issuer: %s', async (_, date) => {
  const listen = { tcp: '127.0.0.1:0' };
  await using harness = await startHarness({
    licenses: ['KEY', 'OTHER'],
    configuration: { ...quiet, listen },
  });
  let agent = await harness.startAgent();
  const roots = join(harness.directory, 'roots');
  const issuer = 'http://127.0.0.1:8790';
  expect(
    await operate(harness.directory, 'lease', 'setup', '--issuer', issuer, '--roots', roots),
  ).toMatchObject({ code: 0 });
  await agent.learn(['KEY']);
  misdate(harness, 'OTHER', date);
  for (const _once of [1, 2]) {
    await agent.learn(['OTHER']);
    await agent.change('usage', 'OTHER', { prefer: 'wait=30' });
  }
  const examine = async (): Promise<void> => {
    const { clock } = await agent.status();
    expect([clock.suspect, clock.store_ahead_s]).toEqual([false, null]);
    expect(Math.abs(Date.parse(clock.now) - Date.now())).toBeLessThan(60_000);
    expect(Date.parse(clock.high_water)).toBeLessThan(Date.now() + 60_000);
    expect(await standing(agent, 'KEY')).toBe('fresh, enabled');
    // A request that is not signed is refused for that, not because of the clock.
    const headers = { 'content-type': 'application/jwt' };
    const asked = await fetch(`${agent.process.tcp}/lease/v1`, {
      method: 'POST',
      headers,
      body: 'no request',
    });
    expect(await asked.json()).toMatchObject({ code: 'lease_request_invalid' });
  };
  await harness.proxy.become({ kind: 'refuse' });
  await examine();
  agent.process.signal('SIGTERM');
  await agent.process.ended;
  agent = await harness.startAgent();
  await examine();
});
