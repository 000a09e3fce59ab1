import { describe, expect, test } from 'vitest';
import { expiringMs } from '../../../../src/features/leases/service/activation.ts';
import type { WebhookEvent } from '../../../../src/features/webhooks/domain/webhook.ts';
import { buildLease } from '../../leases/support/activation-builders.ts';
import { buildActivation } from '../../leases/support/records.ts';
import { account, buildLicense, product } from '../../../support/builders/store-builders.ts';
import {
  createAgent,
  day,
  type Harness,
  hour,
  key,
  minute,
  no,
  type AgentHarness,
} from '../../../support/harness/service-harness.ts';

async function addWebhook(harness: Harness, types: null = null): Promise<string> {
  const added = await harness.writer.write('addWebhook', { url: 'https://hooks.example/', types });
  if (!added.ok) throw new Error(added.problem.detail);
  return added.value.endpointId;
}

/** The stored events, in order. */
function events({ store }: Harness): WebhookEvent[] {
  const found: WebhookEvent[] = [];
  for (
    let next = store.webhooks.next(0, null);
    next !== null;
    next = store.webhooks.next(next.number, null)
  ) {
    found.push(next);
  }
  return found;
}

function typesOf(harness: Harness): string[] {
  return events(harness).map(({ type, subject }) => `${type} ${subject ?? ''}`.trim());
}

describe('the events of an agent', () => {
  async function agentWithWebhook(): Promise<AgentHarness> {
    const agent = await createAgent({ uses: 5 });
    await addWebhook(agent);
    return agent;
  }

  test('a refund at the store is an event as soon as it is read, and a later read of the same state is none', async () => {
    await using agent = await agentWithWebhook();
    agent.pass(minute);
    await agent.read(agent.says(5, { enabled: false }));
    agent.pass(minute);
    await agent.read(agent.says(5, { enabled: false }));
    expect(typesOf(agent)).toEqual([`license.disabled ${key}`]);
    agent.pass(minute);
    await agent.read(agent.says(6, { enabled: true }));
    expect(typesOf(agent).at(-1)).toBe(`license.enabled ${key}`);
  });

  test('a local disable is an event at once, and an enable that undoes it is another', async () => {
    await using agent = await agentWithWebhook();
    await agent.change('disable');
    await agent.change('enable');
    expect(typesOf(agent)).toEqual([`license.disabled ${key}`, `license.enabled ${key}`]);
  });

  test('a use and the first read of a license are no events', async () => {
    await using agent = await agentWithWebhook();
    await agent.change('usage');
    expect(typesOf(agent)).toEqual([]);
  });

  test('a change that the upstream refuses needs a review, once', async () => {
    await using agent = await agentWithWebhook();
    await agent.change('usage');
    const sent = await agent.send('counter');
    await agent.answer(sent, no('refused'));
    expect(typesOf(agent)).toEqual([`outbox.needs_review ${sent.id}`]);
  });

  test('an upstream that goes down and comes back has two events, and repeated reports have none', async () => {
    await using agent = await agentWithWebhook();
    for (const state of ['up', 'down', 'down', 'up', 'up'] as const) {
      await agent.writer.write('recordUpstreamState', { state });
    }
    expect(typesOf(agent)).toEqual(['upstream.down', 'upstream.up']);
  });
});

test('the number of an event is at least its time in ms and above every earlier number, also if the clock goes back', async () => {
  await using agent = await createAgent();
  await addWebhook(agent);
  for (const ms of [0, 0, hour, -2 * hour]) {
    agent.now += ms;
    const state = events(agent).length % 2 === 0 ? 'down' : 'up';
    await agent.writer.write('recordUpstreamState', { state });
  }
  const numbers = events(agent).map(({ number }) => number);
  expect(numbers).toEqual([...new Set(numbers)].toSorted((one, other) => one - other));
  expect(numbers[2]).toBe(agent.now + 2 * hour);
  expect(numbers[3]).toBe(agent.now + 2 * hour + 1);
});

test('a new endpoint gets no event from before', async () => {
  await using agent = await createAgent();
  const first = await addWebhook(agent);
  await agent.writer.write('recordUpstreamState', { state: 'down' });
  const second = await addWebhook(agent);
  const claim = { claim: 'claim', isAlone: false };
  expect(await agent.writer.write('claimDelivery', { endpointId: second, ...claim })).toMatchObject({
    value: null,
  });
  expect(await agent.writer.write('claimDelivery', { endpointId: first, ...claim })).toMatchObject({
    value: { event: { type: 'upstream.down' } },
  });
});

test('an endpoint is claimed once, until the claim ends, and a result without the claim is ignored', async () => {
  await using agent = await createAgent();
  const endpointId = await addWebhook(agent);
  await agent.writer.write('recordUpstreamState', { state: 'down' });
  const claimAs = async (claim: string) =>
    await agent.writer.write('claimDelivery', { endpointId, claim, isAlone: false });
  expect((await claimAs('one')).ok && agent.store.webhooks.get(endpointId)?.claim).toBe('one');
  expect(await claimAs('two')).toMatchObject({ value: null });
  agent.pass(30_000);
  expect(await claimAs('two')).not.toMatchObject({ value: null });
  const [event] = events(agent);
  if (event === undefined) throw new Error('there is no event');
  const attempt = { status: 204, error: null, retryAfterMs: null, durationMs: 1 };
  const recorded = { endpointId, event, attempt, isLast: false };
  expect(await agent.writer.write('recordDelivery', { ...recorded, claim: 'one' })).toMatchObject({
    value: null,
  });
  expect(agent.store.webhooks.get(endpointId)?.position).toBeLessThan(event.number);
  await agent.writer.write('recordDelivery', { ...recorded, claim: 'two' });
  expect(agent.store.webhooks.get(endpointId)?.position).toBe(event.number);
});

test('an endpoint that failed while the clock was a year ahead is due again when the clock is set back', async () => {
  await using agent = await createAgent();
  const endpointId = await addWebhook(agent);
  await agent.writer.write('recordUpstreamState', { state: 'down' });
  const [event] = events(agent);
  if (event === undefined) throw new Error('there is no event');
  const claim = { endpointId, claim: 'claim', isAlone: true };
  const attempt = { status: 500, error: 'answered 500', retryAfterMs: null, durationMs: 1 };
  agent.now += 365 * day;
  await agent.writer.write('claimDelivery', claim);
  await agent.writer.write('recordDelivery', { ...claim, event, attempt, isLast: false });
  expect(agent.store.webhooks.due(agent.now, true)).toEqual([]);
  agent.now -= 365 * day;
  expect(agent.store.webhooks.due(agent.now, true)).toEqual([endpointId]);
  expect(await agent.writer.write('claimDelivery', claim)).not.toMatchObject({ value: null });
});

test('events from before an instant are removed with their deliveries, and later events stay', async () => {
  await using agent = await createAgent();
  const endpointId = await addWebhook(agent);
  await agent.writer.write('recordUpstreamState', { state: 'down' });
  const [event] = events(agent);
  if (event === undefined) throw new Error('there is no event');
  const attempt = { status: 500, error: 'answered 500', retryAfterMs: null, durationMs: 1 };
  await agent.writer.write('recordReplay', { event, results: [{ endpointId, attempt }] });
  agent.pass(30 * day);
  await agent.writer.write('recordUpstreamState', { state: 'up' });
  expect(await agent.writer.write('pruneEvents', { before: event.number, limit: 10 })).toMatchObject({
    value: { removed: 0 },
  });
  expect(await agent.writer.write('pruneEvents', { before: event.number + 1, limit: 10 })).toMatchObject({
    value: { removed: 1 },
  });
  expect(typesOf(agent)).toEqual(['upstream.up']);
  expect(agent.store.webhooks.deliveryCount(endpointId)).toBe(0);
});

test('events are removed after 30 days, also those whose numbers are in the future because the clock was ahead once', async () => {
  await using agent = await createAgent();
  await addWebhook(agent);
  const report = async (state: 'up' | 'down'): Promise<void> =>
    void (await agent.writer.write('recordUpstreamState', { state }));
  agent.now += 365 * day;
  await report('down');
  agent.now -= 365 * day;
  await report('up');
  agent.pass(day);
  await report('down');
  const prune = async () =>
    await agent.writer.write('pruneEvents', { before: agent.now - 30 * day, limit: 10 });
  agent.pass(29 * day);
  expect(await prune()).toMatchObject({ value: { removed: 0 } });
  agent.pass(minute);
  expect(await prune()).toMatchObject({ value: { removed: 1 } });
  agent.pass(day);
  expect(await prune()).toMatchObject({ value: { removed: 1 } });
  // The event of the wrong clock.
  expect(typesOf(agent)).toEqual(['upstream.down']);
  agent.pass(400 * day);
  expect(await prune()).toMatchObject({ value: { removed: 1 } });
});

test('a lease that ends in three days and was not renewed is reported once; a shorter lease and a renewed one are not', async () => {
  await using agent = await createAgent();
  await addWebhook(agent);
  const put = (
    activationId: string,
    expiresAt: number,
    state: 'active' | 'ended' = 'active',
    answer = buildActivation().answer,
  ): void =>
    agent.store.activations.put(
      buildActivation({
        answer,
        activationId,
        device: activationId,
        licenseKey: key,
        state,
        expiresAt,
        seatUntil: expiresAt,
      }),
    );
  const report = async (): Promise<void> => void (await agent.writer.write('recordExpiringLeases', {}));
  await report();
  put('long', agent.now + 30 * day);
  put('renewed', agent.now + 30 * day);
  put('ended', agent.now + 30 * day, 'ended');
  put('short', agent.now + hour);
  agent.pass(26 * day);
  put('renewed', agent.now + 30 * day);
  await report();
  expect(typesOf(agent)).toEqual([]);
  agent.pass(30 * day - 26 * day - expiringMs);
  // A device that has just renewed has a lease that ends with its license.
  const lease = buildLease({ refreshAt: agent.now + day });
  put('renewed until the end', agent.now + expiringMs, 'active', { kind: 'lease', lease });
  await report();
  agent.pass(minute);
  await report();
  expect(typesOf(agent)).toEqual(['lease.expiring long']);
});

test('a license is reported once before its end and once after its grace, again after a renewal, and not if it is disabled', async () => {
  await using agent = await createAgent();
  await addWebhook(agent);
  const { licenses, products, accounts } = agent.store;
  accounts.add(account, 'digest');
  products.add(product, 'digest');
  const end = agent.now + 30 * day;
  const license = { productKey: 'press', expiresAt: end };
  licenses.add(buildLicense({ ...license, licenseKey: 'ONE', graceUntil: end + day }));
  licenses.add(buildLicense({ ...license, licenseKey: 'OFF', enabled: false }));
  licenses.add(buildLicense({ licenseKey: 'EVER', productKey: 'press' }));
  const report = async (): Promise<void> =>
    void (await agent.writer.write('recordLicenseEnds', { expiringMs: 7 * day }));
  await report();
  agent.pass(23 * day - 1);
  await report();
  expect(typesOf(agent)).toEqual([]);
  agent.pass(1);
  await report();
  await report();
  expect(typesOf(agent)).toEqual(['license.expiring ONE']);
  agent.pass(8 * day - 1);
  await report();
  expect(typesOf(agent)).toEqual(['license.expiring ONE']);
  agent.pass(1);
  await report();
  await report();
  expect(typesOf(agent)).toEqual(['license.expiring ONE', 'license.expired ONE']);
  licenses.setTerms({ licenseKey: 'ONE', expiresAt: agent.now + 10 * day });
  agent.pass(3 * day);
  await report();
  expect(typesOf(agent)).toEqual(['license.expiring ONE', 'license.expired ONE', 'license.expiring ONE']);
});

test('a renewal is an event, and another change of the terms is none', async () => {
  await using agent = await createAgent();
  await addWebhook(agent);
  const { licenses, products, accounts } = agent.store;
  accounts.add(account, 'digest');
  products.add(product, 'digest');
  licenses.add(buildLicense({ licenseKey: 'ONE', productKey: 'press', expiresAt: agent.now + day }));
  const of = { tenant: { accountId: account.accountId, productKey: null }, licenseKey: 'ONE' };
  await agent.writer.write('updateLicense', { ...of, change: { expiresAt: agent.now + 2 * day } });
  expect(typesOf(agent)).toEqual([]);
  await agent.writer.write('renewLicense', { ...of, span: '1y' });
  expect(typesOf(agent)).toEqual(['license.renewed ONE']);
});

test('each license and each lease is reported once, even if 12,000 of them end at one instant', async () => {
  await using agent = await createAgent();
  await addWebhook(agent);
  const { accounts, products, licenses, activations } = agent.store;
  accounts.add(account, 'digest');
  products.add(product, 'digest');
  const count = 12_000;
  const report = async (): Promise<void> => {
    await agent.writer.write('recordLicenseEnds', { expiringMs: day });
    await agent.writer.write('recordExpiringLeases', {});
  };
  await report();
  const expiresAt = agent.now + 30 * day;
  for (let number = 0; number < count; number += 1) {
    licenses.add(buildLicense({ licenseKey: `KEY ${number}`, productKey: 'press', expiresAt }));
    activations.put(buildActivation({ activationId: `${number}`, device: `${number}`, expiresAt }));
  }
  agent.pass(30 * day - expiringMs);
  for (let call = 0; call < 4; call += 1) await report();
  agent.pass(expiringMs);
  for (let call = 0; call < 4; call += 1) await report();
  const reported = events(agent).map(({ type, subject }) => `${type} ${subject}`);
  const numbers = Array.from({ length: count }, (_, number) => number);
  expect(reported.toSorted()).toEqual(
    numbers
      .flatMap((number) => [
        `lease.expiring ${number}`,
        `license.expired KEY ${number}`,
        `license.expiring KEY ${number}`,
      ])
      .toSorted(),
  );
});
