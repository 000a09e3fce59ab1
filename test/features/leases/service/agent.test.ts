import { describe, expect, it } from 'vitest';
import type { Applied } from '../../../../src/domain/outbox/outcome.ts';
import type { License } from '../../../../src/domain/license.ts';
import { mayWaitAtAgent } from '../../../../src/features/leases/service/services.ts';
import { HolderModel } from '../property/holder-model.ts';
import { IssuingAgent, saidIn } from '../support/lease-harness.ts';
import {
  day,
  hour,
  key,
  minute,
  no,
  productKey,
  refusalOf,
  valueOf,
} from '../../../support/harness/service-harness.ts';

class Agent extends IssuingAgent {
  /** Reads a key under another spelling; the response has the upstream's spelling. */
  async readAs(asked: string, outcome: Applied<License>): Promise<void> {
    const { policy, monotonic } = this;
    const read = { licenseKey: asked, productId: productKey, outcome, sentAt: monotonic };
    valueOf(await this.writer.write('recordRead', { ...read, isMissingConfirmed: true, policy }));
  }

  /** Delivers the first operation, after which the upstream has this count. */
  async deliver(uses: number): Promise<void> {
    await this.answer(await this.send('counter'), this.says(uses));
  }

  idsOfUses(): string[] {
    return this.store.operations.queue(key, 'counter').map(({ id }) => id);
  }

  contents(): unknown {
    const { store } = this;
    return {
      local: this.local,
      operations: store.operations.list(null, { limit: 100, offset: 0 }),
      activations: store.activations.list({}, { limit: 100, offset: 0 }),
      history: store.history.list(key, { limit: 100, offset: 0 }),
    };
  }
}

describe('an agent that issues leases', () => {
  it('a lease has the license as the upstream sent it, without members of its own', async () => {
    await using agent = await new Agent().open({ seats: 3, showsEmail: true });
    await agent.read(agent.says(5, { extra: { product_name: 'Press' } }));
    const lease = await agent.device('a').lease();
    expect(lease).toMatchObject({ productKey: 'press', seats: { limit: 3, taken: 1 } });
    expect(lease.license).toEqual({
      licenseKey: key,
      productKey: 'link',
      buyerEmail: 'a@example.com',
      uses: 5,
      enabled: true,
      createdAt: 1,
    });
  });

  it('a lease ends with `freshness.grace` of the license', async () => {
    await using agent = await new Agent().open();
    const confirmedAt = agent.now;
    agent.pass(4 * day);
    const lease = await agent.device('a').lease();
    expect(lease.expiresAt).toBe(confirmedAt + 14 * day);
    expect(agent.store.activations.list({}, { limit: 1, offset: 0 })).toMatchObject([
      { expiresAt: confirmedAt + 14 * day },
    ]);
  });

  it('a short term is not changed by `freshness.grace`', async () => {
    await using agent = await new Agent().open({ termMs: hour });
    expect((await agent.device('a').lease()).expiresAt).toBe(agent.now + hour);
  });

  it('a license that was confirmed too long ago gets no lease, and nothing changes', async () => {
    await using agent = await new Agent().open();
    const device = agent.device('a');
    await device.lease();
    agent.pass(14 * day);
    const contents = agent.contents();
    expect(refusalOf(await device.ask('renew', { uses: { recorded: 1, returned: 0 } }))).toBe(
      'verdict_expired',
    );
    agent.pass(1);
    expect(refusalOf(await device.ask('renew', { uses: { recorded: 1, returned: 0 } }))).toBe(
      'verdict_expired',
    );
    expect(agent.contents()).toEqual(contents);
  });

  it('a license that is disabled gets a notice at any age', async () => {
    await using agent = await new Agent().open({}, { enabled: false });
    agent.pass(100 * day);
    expect(saidIn(await agent.device('a').ask('take'))).toBe('disabled');
  });

  it('a license that this agent has disabled gets a notice before the upstream knows', async () => {
    await using agent = await new Agent().open();
    const device = agent.device('a');
    await device.lease();
    await agent.record('disable');
    expect(saidIn(await device.ask('renew'))).toBe('disabled');
  });

  it('a license that is unknown here is to be fetched first', async () => {
    await using agent = await new Agent().open();
    expect(refusalOf(await agent.device('a').ask('take', { licenseKey: 'NEW' }))).toBe(
      'upstream_unreachable',
    );
  });

  it('a license that is gone, or of another product, is not found', async () => {
    await using agent = await new Agent().open();
    const device = agent.device('a');
    agent.productId = 'other';
    expect(refusalOf(await device.ask('take'))).toBe('license_not_found');
    agent.productId = productKey;
    await agent.read(no('missing'));
    agent.pass(hour);
    await agent.read(no('missing'));
    expect(refusalOf(await device.ask('take'))).toBe('license_not_found');
  });

  it('a lease for a file is longer than the grace only if the license was confirmed just now', async () => {
    await using agent = await new Agent().open();
    const device = agent.device('a');
    const until = agent.now + 200 * day;
    agent.pass(hour);
    const contents = agent.contents();
    const refused = await device.ask('take', {}, { until, isFile: true });
    expect(refusalOf(refused)).toBe('verdict_expired');
    expect(agent.contents()).toEqual(contents);
    await agent.read(agent.says(5));
    expect((await device.lease('take', {}, { until, isFile: true })).expiresAt).toBe(until);
    const [entry] = agent.store.audit.list({}, { limit: 1, offset: 0 });
    expect(entry).toMatchObject({ act: 'lease.sign', actor: 'device' });
  });

  it('a lease for a file may be shorter than the grace', async () => {
    await using agent = await new Agent().open();
    agent.pass(hour);
    const until = agent.now + 3 * day;
    expect((await agent.device('a').lease('take', {}, { until })).expiresAt).toBe(until);
  });
});

describe('uses in requests to an agent', () => {
  it('uses become operations of the outbox, recorded before returned', async () => {
    await using agent = await new Agent().open();
    const device = agent.device('a');
    const lease = await device.lease('take', { uses: { recorded: 3, returned: 1 } });
    expect(lease.license.uses).toBe(7);
    expect(agent.local).toMatchObject({ uses: 7, pending: 4 });
    const kinds = agent.store.operations
      .queue(key, 'counter')
      .map(({ kind, credential }) => [kind, credential]);
    expect(kinds).toEqual([
      ['usage', 'device'],
      ['usage', 'device'],
      ['usage', 'device'],
      ['decrease', 'device'],
    ]);
    const history = agent.store.history.list(key, { limit: 10, offset: 0 });
    expect(history.map(({ change, before, after }) => [change, before.uses, after.uses])).toEqual([
      ['decrease', 8, 7],
      ['usage', 5, 8],
    ]);
  });

  it('operations of a request are delivered one after the other', async () => {
    await using agent = await new Agent().open();
    await agent.device('a').lease('take', { uses: { recorded: 2, returned: 0 } });
    for (const uses of [6, 7]) await agent.deliver(uses);
    expect(agent.store.operations.unfinished()).toBe(0);
  });

  it('a repeated request adds no operation', async () => {
    await using agent = await new Agent().open();
    const request = agent.device('a').sign('take', { uses: { recorded: 3, returned: 0 } });
    await agent.issue(request);
    await agent.issue(request);
    expect(agent.store.operations.unfinished()).toBe(3);
  });

  it('a request with more uses than `sync.max_pending` has room for is refused as a whole', async () => {
    await using agent = await new Agent().open();
    agent.maxPending = 5;
    await agent.record('usage');
    const device = agent.device('a');
    await device.lease();
    const contents = agent.contents();
    const refused = await device.ask('renew', { uses: { recorded: 4, returned: 1 } });
    expect(refusalOf(refused)).toBe('storage_full');
    expect(agent.contents()).toEqual(contents);
    await device.lease('renew', { uses: { recorded: 3, returned: 1 } });
    expect(agent.store.operations.unfinished()).toBe(5);
    // A renewal without uses needs no room.
    await device.lease('renew', { uses: { recorded: 3, returned: 1 } });
  });

  it('a request may carry 10,000 uses', async () => {
    await using agent = await new Agent().open();
    agent.maxPending = 20_000;
    await agent.device('a').lease('take', { uses: { recorded: 10_000, returned: 0 } });
    expect(agent.local).toMatchObject({ uses: 10_005, pending: 10_000 });
  });
});

describe('an agent that is restored from a backup', () => {
  it('does not count uses again that it had sent to the upstream after the backup', async () => {
    await using agent = await new Agent().open();
    const holder = new HolderModel('a', key);
    const exchange = async (): Promise<void> => {
      const request = holder.request({ isAsked: true, replaces: null, now: agent.now });
      if (request !== null) holder.receive(request, await agent.issue(request));
    };
    await exchange();
    holder.use({ recorded: 2, returned: 0 });
    await exchange();
    const backup = agent.store.activations.ofLicense(key, 10);
    holder.use({ recorded: 3, returned: 0 });
    await exchange();
    for (const uses of [6, 7, 8, 9, 10]) await agent.deliver(uses);
    for (const activation of backup) agent.store.activations.put(activation);
    valueOf(await agent.writer.write('restore', {}));
    await agent.restart();
    agent.pass(hour);
    await agent.read(agent.says(10));
    // What the device has counted since is counted once.
    holder.use({ recorded: 1, returned: 0 });
    while (holder.hasSomethingToSay) await exchange();
    expect(agent.local).toMatchObject({ uses: 11, pending: 1 });
  });
});

it('at a plain upstream, a use that a device reports again to a restored agent ends `inferred`', async () => {
  await using agent = await new Agent().open();
  const holder = new HolderModel('a', key);
  const exchangeWith = async (issuer: IssuingAgent): Promise<void> => {
    const request = holder.request({ isAsked: true, replaces: null, now: issuer.now });
    if (request !== null) holder.receive(request, await issuer.issue(request));
  };
  await exchangeWith(agent);
  holder.use({ recorded: 2, returned: 0 });
  await exchangeWith(agent);
  // The upstream has counted both before the backup of another day is restored.
  await using restored = await new Agent().open();
  valueOf(await restored.writer.write('restore', {}));
  await restored.restart();
  restored.pass(hour);
  await restored.read(restored.says(7));
  holder.use({ recorded: 1, returned: 0 });
  for (let step = 0; step < 5 && holder.hasSomethingToSay; step += 1) await exchangeWith(restored);
  const ids = restored.idsOfUses();
  for (const uses of [8, 9, 10]) await restored.deliver(uses);
  const states = ids.map((id) => restored.store.operations.get(id)?.progress.state);
  expect(states).toEqual(['inferred', 'inferred', 'inferred']);
});

it.each([
  ['right', 0],
  ['half a minute slow, as it may be on another machine', -30_000],
])('a restored agent signs nothing before its upstream has spoken, if its clock is %s', async (_, ahead) => {
  await using agent = await new Agent().open();
  const device = agent.device('a');
  agent.now += ahead;
  valueOf(await agent.writer.write('restore', {}));
  await agent.restart();
  expect(refusalOf(await device.ask('take'))).toBe('upstream_unreachable');
  agent.pass(hour);
  await agent.read(agent.says(5));
  expect(saidIn(await device.ask('take'))).toBe('lease');
});

describe('an agent that is restored from a backup of before a device was activated', () => {
  const reported = async (isForgotten: boolean) => {
    await using agent = await new Agent().open();
    // The ids of the harness are numbers: the next agent gives the device another one.
    for (const each of ['b', 'c', 'd']) await agent.device(each).lease();
    const holder = new HolderModel('a', key);
    const exchange = async (): Promise<void> => {
      const request = holder.request({ isAsked: true, replaces: null, now: agent.now });
      if (request !== null) holder.receive(request, await agent.issue(request));
    };
    await exchange();
    holder.use({ recorded: 2, returned: 1 });
    await exchange();
    const before = { ids: agent.idsOfUses(), activationId: holder.held.activationId };
    await using restored = await new Agent().open();
    if (isForgotten) valueOf(await restored.writer.write('restore', {}));
    await restored.restart();
    restored.pass(hour);
    await restored.read(restored.says(6));
    const ask = async (): Promise<void> => {
      const request = holder.request({ isAsked: true, replaces: null, now: restored.now });
      if (request !== null) holder.receive(request, await restored.issue(request));
    };
    holder.use({ recorded: 1, returned: 0 });
    for (let step = 0; step < 5 && holder.hasSomethingToSay; step += 1) await ask();
    return { before, after: restored.idsOfUses(), activationId: holder.held.activationId };
  };

  it('gives each use the id of before, so that a Latchkey counts the use once', async () => {
    const { before, after, activationId } = await reported(true);
    expect(before.ids).toHaveLength(3);
    expect(after).toHaveLength(4);
    expect(after).toEqual(expect.arrayContaining(before.ids));
    expect(activationId).toBe(before.activationId);
  });

  it('another issuer gives a device an activation of its own, and its uses other ids', async () => {
    const { before, after, activationId } = await reported(false);
    expect(after).toHaveLength(1);
    expect(before.ids).not.toContain(after[0]);
    expect(activationId).not.toBe(before.activationId);
  });
});

describe('spellings of a license key at an agent', () => {
  it('spellings of a key share one set of activations', async () => {
    await using agent = await new Agent().open({ seats: 1 });
    await agent.readAs('key-1', agent.says(5));
    await agent.device('a').lease('take', { licenseKey: 'key-1' });
    expect(saidIn(await agent.device('b').ask('take', { licenseKey: 'KEY-1' }))).toBe('no_seat_left');
    expect(saidIn(await agent.device('b').ask('take', { licenseKey: '\u2066KEY-1 ', seq: 2 }))).toBe(
      'no_seat_left',
    );
  });

  it('activations move to the spelling that the upstream uses', async () => {
    await using agent = await new Agent().open({ seats: 1 });
    const device = agent.device('a');
    const { activationId } = await device.lease();
    const own = agent.says(5);
    await agent.readAs(key, { ...own, value: { ...own.value, licenseKey: 'Key-1' } });
    expect(agent.store.activations.ofDevice('Key-1', device.thumbprint)).toMatchObject({ activationId });
    const lease = await device.lease('renew');
    expect(lease).toMatchObject({ activationId, license: { licenseKey: 'Key-1' } });
    expect(saidIn(await agent.device('b').ask('take', { licenseKey: 'Key-1' }))).toBe('no_seat_left');
  });

  it('activations of two spellings are merged if the upstream says that they are one key', async () => {
    await using agent = await new Agent().open();
    const own = agent.says(5);
    const answer = { ...own, value: { ...own.value, licenseKey: 'Key-1' } };
    await agent.readAs('Key-1', answer);
    const [one, two, both] = [agent.device('one'), agent.device('two'), agent.device('both')];
    await one.lease('take', { licenseKey: 'KEY-1' });
    await two.lease('take', { licenseKey: 'Key-1' });
    await both.lease('take', { licenseKey: 'KEY-1' });
    both.seq = 0;
    await both.lease('take', { licenseKey: 'Key-1' });
    await agent.readAs('KEY-1', answer);
    const activations = agent.store.activations.ofLicense('Key-1', 10);
    expect(activations.map(({ device }) => device).toSorted()).toEqual(
      [both, one, two].map(({ thumbprint }) => thumbprint),
    );
    expect(agent.store.activations.ofLicense('KEY-1', 10)).toEqual([]);
    await one.lease('renew', { licenseKey: 'KEY-1' });
  });
});

describe('mayWaitAtAgent', () => {
  it('a renewal before one is due waits, until its license or activation changes', async () => {
    await using agent = await new Agent().open();
    const device = agent.device('a');
    const { refreshAt } = await device.lease();
    const renewal = device.sign('renew');
    const wait = (productId = productKey) =>
      mayWaitAtAgent(
        agent.store,
        { signedRequest: renewal, productId, freshness: agent.freshness },
        agent.now,
      );
    expect(wait()).toEqual({ licenseKey: key, until: refreshAt });
    expect(wait('other')).toBeNull();
    await agent.read(agent.says(5, { enabled: false }));
    expect(wait()).toBeNull();
    await agent.read(agent.says(5));
    expect(wait()).not.toBeNull();
    const { activationId } = agent.store.activations.ofDevice(key, device.thumbprint) ?? {};
    await agent.writer.write('blockActivation', { activationId: activationId ?? '', accountId: null });
    expect(wait()).toBeNull();
  });

  it('a renewal waits while the agent cannot ask whether the license was renewed, and is answered once the key is gone', async () => {
    await using agent = await new IssuingAgent().open();
    const expiresAt = Math.floor(agent.now / 1000) * 1000 + hour;
    const said = agent.says(5);
    await agent.read({ ...said, value: { ...said.value, expiresAt } });
    const device = agent.device('a');
    await device.lease();
    agent.pass(hour + 1);
    const { refreshAt } = await device.lease('renew');
    expect(refreshAt).toBeGreaterThan(agent.now + hour);
    const wait = () =>
      mayWaitAtAgent(
        agent.store,
        { signedRequest: device.sign('renew'), productId: productKey, freshness: agent.freshness },
        agent.now,
      );
    expect(wait()).toEqual({ licenseKey: key, until: refreshAt });
    await agent.read(no('missing'));
    agent.pass(2 * minute);
    await agent.read(no('missing'));
    expect(agent.snapshot.gone).toBe(true);
    expect(wait()).toBeNull();
  });
});
