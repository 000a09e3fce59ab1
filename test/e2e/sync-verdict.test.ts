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
import {
  delayResponse,
  every,
  firewallPage,
  hang,
  loseResponse,
  rateLimited,
  refusal,
  serverError,
  corruptBody,
  type Fault,
} from '../support/harness/plain-upstream.ts';
import type { HttpResponse } from '../support/network/raw-http.ts';

/** The agent sends nothing in the background unless a verdict is stale. */
const quiet = { upstream: { probe: '1h' }, freshness: { refresh: '1h' } };

/** The freshness of a verdict, or the code of an error. */
function standing(answer: HttpResponse): string {
  return answer.status === 200 ? String(answer.headers['latchkey-freshness']) : String(codeOf(answer));
}

/** Verifies until the given freshness or code appears; returns each different value on the way, in order. */
async function standingsUntil(agent: Agent, licenseKey: string, last: string): Promise<string[]> {
  const standings: string[] = [];
  await eventually(async () => {
    const now = standing(await agent.verify(licenseKey));
    if (now !== standings.at(-1)) standings.push(now);
    return now === last;
  });
  return standings;
}

function verifies({ upstream }: AgentHarness, licenseKey: string): number {
  return upstream.ledger.filter((entry) => entry.kind === 'verify' && entry.licenseKey === licenseKey).length;
}

test.concurrent(
  'without the upstream a verdict changes from fresh to stale to grace to 503 verdict_expired',
  async () => {
    // Each phase is longer than one verify takes on a busy machine.
    const freshness = { fresh: '4s', stale: '8s', grace: '12s', refresh: '1h' };
    await using harness = await startHarness({ licenses: ['KEY'], configuration: { ...quiet, freshness } });
    const agent = await harness.startAgent();
    await agent.learn(['KEY']);
    await harness.proxy.become({ kind: 'refuse' });
    const standings = await standingsUntil(agent, 'KEY', 'verdict_expired');
    expect(standings).toEqual(['fresh', 'stale', 'grace', 'verdict_expired']);
    expect((await agent.verify('KEY')).status).toBe(503);

    // The upstream is back, so that a verdict is returned again at once. The breaker's probe may ask before
    // the caller.
    await harness.proxy.become({ kind: 'pass' });
    const again = await standingsUntil(agent, 'KEY', 'fresh');
    expect(again.filter((one) => one !== 'verdict_expired')).toEqual(['fresh']);
  },
);

test.concurrent(
  'past its grace, a key that was enabled accepts a use and a key that was disabled refuses it',
  async () => {
    const freshness = { fresh: '50ms', stale: '100ms', grace: '400ms', refresh: '1h' };
    const licenses = ['ENABLED', { licenseKey: 'DISABLED', enabled: false }];
    await using harness = await startHarness({ licenses, configuration: { ...quiet, freshness } });
    const agent = await harness.startAgent();
    await agent.learn(['ENABLED', 'DISABLED']);
    await harness.proxy.become({ kind: 'refuse' });
    await standingsUntil(agent, 'ENABLED', 'verdict_expired');
    await standingsUntil(agent, 'DISABLED', 'expired');
    const taken = await agent.change('usage', 'ENABLED');
    const refused = await agent.change('usage', 'DISABLED');
    expect([taken.status, refused.status, codeOf(refused)]).toEqual([200, 503, 'verdict_expired']);
    await harness.proxy.become({ kind: 'pass' });
    await agent.atRest();
    expect(harness.upstream.license('ENABLED').uses).toBe(1);
    expect(harness.upstream.license('DISABLED').uses).toBe(0);
  },
);

test.concurrent('a stale verdict is answered at once and refreshed in the background', async () => {
  const freshness = { fresh: '300ms', stale: '1h', grace: '2h', refresh: '1h' };
  await using harness = await startHarness({ licenses: ['KEY'], configuration: { ...quiet, freshness } });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await standingsUntil(agent, 'KEY', 'stale');
  await standingsUntil(agent, 'KEY', 'fresh');
  expect(verifies(harness, 'KEY')).toBeGreaterThanOrEqual(2);
  // The agent sent one request each time the verdict became stale, and none in between.
  const gaps = harness.upstream.ledger
    .filter(({ licenseKey }) => licenseKey === 'KEY')
    .map(({ at }, index, all) => at - (all[index - 1]?.at ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(280);
});

test.concurrent('keys in use are refreshed in the background before they are stale', async () => {
  const freshness = { fresh: '3s', stale: '1h', grace: '2h', refresh: '200ms' };
  await using harness = await startHarness({ licenses: ['KEY'], configuration: { ...quiet, freshness } });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await harness.upstream.until(() => verifies(harness, 'KEY') >= 4);
  harness.upstream.refund('KEY');
  await eventually(async () => dataOf(await agent.verify('KEY'))['enabled'] === false);
  expect(standing(await agent.verify('KEY'))).toBe('fresh');
});

test.concurrent(
  'a refunded key stays refused through an outage, past its grace, and across kill -9',
  async () => {
    const freshness = { fresh: '50ms', stale: '100ms', grace: '150ms', refresh: '1h' };
    await using harness = await startHarness({ licenses: ['KEY'], configuration: { ...quiet, freshness } });
    const agent = await harness.startAgent();
    await agent.learn(['KEY']);
    harness.upstream.refund('KEY');
    await eventually(async () => dataOf(await agent.verify('KEY'))['enabled'] === false);
    await harness.proxy.become({ kind: 'refuse' });
    await standingsUntil(agent, 'KEY', 'expired');
    await agent.kill();
    const answer = await (await harness.startAgent()).verify('KEY');
    expect([standing(answer), dataOf(answer)['enabled']]).toEqual(['expired', false]);
  },
);

test.concurrent(
  'a key disabled while the upstream is down stays disabled across kill -9, and an enable waits',
  async () => {
    await using harness = await startHarness({ licenses: ['KEY'], configuration: quiet });
    const agent = await harness.startAgent(hasty);
    await agent.learn(['KEY']);
    await harness.proxy.become({ kind: 'half_open' });
    expect(dataOf(await agent.change('disable', 'KEY'))['enabled']).toBe(false);
    // After one attempt the disable can no longer be cancelled without the upstream.
    await eventually(async () => (await agent.operations())[0]?.attempts !== 0);
    await agent.kill();
    const successor = await harness.startAgent({ upstream: { timeout: '10s' } });
    expect(dataOf(await successor.verify('KEY'))['enabled']).toBe(false);
    const enabled = await successor.change('enable', 'KEY');
    expect([dataOf(enabled)['enabled'], enabled.headers['latchkey-pending']]).toEqual([false, '2']);
    expect(dataOf(await successor.verify('KEY'))['enabled']).toBe(false);
    await harness.proxy.become({ kind: 'pass' });
    await successor.atRest();
    expect(dataOf(await successor.verify('KEY'))['enabled']).toBe(true);
    expect(harness.upstream.license('KEY').enabled).toBe(true);
  },
);

test.concurrent(
  'a key is gone only after two 404s far enough apart, and comes back when the upstream knows it',
  async () => {
    const freshness = {
      fresh: '20ms',
      stale: '1h',
      grace: '2h',
      refresh: '1h',
      gone: '700ms',
      unknown: '200ms',
    };
    await using harness = await startHarness({ licenses: ['KEY'], configuration: { ...quiet, freshness } });
    const agent = await harness.startAgent();
    await agent.learn(['KEY']);
    harness.upstream.forget('KEY');
    const standings = await standingsUntil(agent, 'KEY', 'license_not_found');
    const goneAt = Date.now();
    expect(standings).not.toContain('upstream_unreachable');
    const refusals = harness.upstream.ledger.filter(
      ({ licenseKey, answered }) => licenseKey === 'KEY' && answered === 'status:404',
    );
    expect(refusals.length).toBeGreaterThanOrEqual(2);
    // Measured between the responses, because one request may take longer than the other.
    expect(goneAt - (refusals[0]?.at ?? 0)).toBeGreaterThanOrEqual(690);

    harness.upstream.addLicense({
      licenseKey: 'KEY',
      productKey: 'product',
      buyerEmail: 'buyer@example.com',
    });
    await eventually(async () => (await agent.verify('KEY')).status === 200);
  },
);

test.concurrent('a single 404 between two successful reads does not make a key gone', async () => {
  const freshness = { fresh: '20ms', stale: '1h', grace: '2h', refresh: '1h', gone: '300ms' };
  await using harness = await startHarness({ licenses: ['KEY'], configuration: { ...quiet, freshness } });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  let asked = 0;
  // Every second response is a 404, so that no 404 follows another.
  harness.upstream.fault = ({ licenseKey }) => {
    if (licenseKey !== 'KEY') return undefined;
    asked += 1;
    return asked % 2 === 1 ? refusal(404) : undefined;
  };
  const statuses = new Set<number>();
  await eventually(async () => {
    statuses.add((await agent.verify('KEY')).status);
    return asked >= 20;
  });
  expect([...statuses]).toEqual([200]);
});

const noVerdicts: [string, Fault][] = [
  ['answers 500', serverError(500)],
  ['answers a firewall page with 404', firewallPage(404)],
  ['answers a welcome page with 200', corruptBody()],
  ['does not answer', hang()],
  ['closes the connection', loseResponse],
  ['asks to wait', rateLimited(1)],
  ['refuses our secret', refusal(401)],
];

test.concurrent(
  'a key that was never seen is 503 upstream_unreachable, never 404, for every failure of the upstream',
  async () => {
    await using harness = await startHarness({ configuration: quiet });
    const agent = await harness.startAgent({ ...hasty, sync: { breaker: { failures: 100 } } });
    const answers: Record<string, unknown> = {};
    for (const [what, fault] of noVerdicts) {
      harness.upstream.fault = every(fault);
      const answer = await agent.verify(`NEVER-SEEN-${what.length}`);
      answers[what] = [answer.status, codeOf(answer)];
    }
    await harness.proxy.become({ kind: 'refuse' });
    const away = await agent.verify('NEVER-SEEN');
    answers['is away'] = [away.status, codeOf(away)];
    const changed = await agent.change('usage', 'NEVER-SEEN');
    answers['is away, and a use comes'] = [changed.status, codeOf(changed)];
    const unreachable = Object.keys(answers).map((what) => [what, [503, 'upstream_unreachable']]);
    expect(answers).toEqual(Object.fromEntries(unreachable));
  },
);

test.concurrent('the first 404 is cached for two seconds: many callers cause one request', async () => {
  const freshness = { refresh: '1h', unknown: '8s' };
  await using harness = await startHarness({ configuration: { ...quiet, freshness } });
  const agent = await harness.startAgent();
  await eventually(async () => (await agent.verify('NOBODYS')).status === 404);
  for (let ask = 0; ask < 5; ask += 1) {
    expect(codeOf(await agent.verify('NOBODYS'))).toBe('license_not_found');
  }
  const first = harness.upstream.ledger.find(({ licenseKey }) => licenseKey === 'NOBODYS');
  expect(verifies(harness, 'NOBODYS')).toBe(1);
  await eventually(async () => {
    await agent.verify('NOBODYS');
    return verifies(harness, 'NOBODYS') === 2;
  });
  const again = harness.upstream.ledger.findLast(({ licenseKey }) => licenseKey === 'NOBODYS');
  expect((again?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1_990);
});

test.concurrent('callers that verify a new key at the same time share one request', async () => {
  await using harness = await startHarness({ licenses: ['KEY'], configuration: quiet });
  const agent = await harness.startAgent();
  harness.upstream.fault = every(delayResponse(150));
  const answers = await Promise.all(Array.from({ length: 15 }, () => agent.verify('KEY')));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(verifies(harness, 'KEY')).toBe(1);
  expect(answers[0]?.headers['cache-status']).toBe('latchkey; fwd=miss');
});
