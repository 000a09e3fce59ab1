import { expect, test } from 'vitest';
import { activatedKey, maxAttempts } from '../../src/domain/agent/activated-key.ts';
import { createAgent, day, key, no, productKey, valueOf } from '../support/harness/service-harness.ts';

test('an attempt is kept until its answer is known, and a later one of the same name takes its place', async () => {
  await using agent = await createAgent();
  const named = { licenseKey: key, name: 'Laptop' };
  const first = valueOf(await agent.writer.write('beginActivation', named));
  expect(agent.store.activationAttempts.get(key, 'Laptop')).toEqual(first);
  expect(first).toMatchObject({ sentAt: agent.now, activationId: null });
  agent.pass(1);
  const second = valueOf(await agent.writer.write('beginActivation', named));
  expect(agent.store.activationAttempts.get(key, 'Laptop')).toEqual(second);
  expect(agent.store.activationAttempts.get(key, 'Phone')).toBeNull();
  agent.reopen();
  await agent.writer.write('endActivationAttempt', { ...named, activationId: 'a-1' });
  expect(agent.store.activationAttempts.get(key, 'Laptop')).toEqual({ ...second, activationId: 'a-1' });
  await agent.writer.write('endActivationAttempt', { ...named, activationId: null });
  expect(agent.store.activationAttempts.get(key, 'Laptop')).toBeNull();
});

test('attempts are removed after 30 days, and only the latest are kept', async () => {
  await using agent = await createAgent();
  await agent.writer.write('beginActivation', { licenseKey: key, name: 'old' });
  agent.pass(30 * day);
  await agent.writer.write('beginActivation', { licenseKey: key, name: 'new' });
  const prune = async () =>
    valueOf(await agent.writer.write('pruneActivations', { removalTime: agent.now, limit: 10 }));
  expect(await prune()).toEqual({ removed: 0 });
  agent.pass(1);
  expect(await prune()).toEqual({ removed: 1 });
  expect(agent.store.activationAttempts.get(key, 'old')).toBeNull();
  const { activationAttempts } = agent.store;
  for (let number = 0; number < maxAttempts; number += 1)
    activationAttempts.put({
      id: 'x',
      licenseKey: key,
      name: `${number}`,
      sentAt: agent.now + number,
      activationId: null,
    });
  await agent.writer.write('beginActivation', { licenseKey: key, name: 'first of all' });
  expect(activationAttempts.get(key, 'new')).toBeNull();
  expect(activationAttempts.get(key, `${maxAttempts - 1}`)).not.toBeNull();
});

test('the activations of a license key are found', async () => {
  await using agent = await createAgent();
  const activations = (licenseKey: string) =>
    agent.store.snapshots.activations(licenseKey, 10).map(({ license }) => license.licenseKey);
  expect(activations(key)).toEqual([]);
  const { snapshots } = agent.store;
  for (const licenseKey of [activatedKey(key, 'a'), activatedKey(key, 'b'), activatedKey(`${key}-2`, 'c')])
    snapshots.put({ ...agent.snapshot, license: { ...agent.snapshot.license, licenseKey } });
  expect(activations(key)).toEqual([activatedKey(key, 'a'), activatedKey(key, 'b')]);
  expect(snapshots.activations(key, 1)).toHaveLength(1);
});

test('a response to a change that shows only the state leaves the rest of the license as it was', async () => {
  await using agent = await createAgent({ uses: 5, extra: { product_name: 'Shop' } });
  await agent.record('disable');
  const operation = await agent.send('state');
  const unknown = { licenseKey: key, productKey: '', buyerEmail: '', uses: 0, enabled: false, createdAt: 0 };
  await agent.answer(operation, { ...agent.says(0), value: unknown, shows: 'enabled' });
  expect(agent.snapshot.license).toMatchObject({
    uses: 5,
    enabled: false,
    buyerEmail: 'a@example.com',
    extra: { product_name: 'Shop' },
  });
  expect(agent.snapshot.manyWriters).toBe(false);
});

test('a refusal of a read that says something about a known license is an answer about it', async () => {
  await using agent = await createAgent({ uses: 5, extra: { product_name: 'Shop' } });
  const refused = { ...no('missing'), license: { enabled: false, extra: { valid: false } } };
  await agent.read(refused);
  expect(agent.snapshot).toMatchObject({
    license: { uses: 5, enabled: false, extra: { valid: false }, buyerEmail: 'a@example.com' },
    missingSince: null,
    gone: false,
  });
  // Of a key that is not known, it is only a 404.
  const { policy } = agent;
  const command = { licenseKey: 'OTHER', productId: productKey, sentAt: agent.monotonic, policy };
  await agent.writer.write('recordRead', { ...command, outcome: refused, isMissingConfirmed: true });
  expect(agent.store.snapshots.get('OTHER')).toBeNull();
});

test('a use that the store refuses because the key is closed dates what is known of the key', async () => {
  await using agent = await createAgent({ uses: 5 });
  await agent.record('usage');
  const operation = await agent.send('counter');
  agent.pass(1);
  const extra = { error: 'ResourceNotFound' };
  await agent.answer(operation, { ...no('refused'), license: { enabled: false, extra } });
  expect(agent.snapshot).toMatchObject({ license: { enabled: false, extra }, confirmedAt: agent.now });
});
