import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { codeOf, eventually, productKey, secret, startHarness } from '../support/harness/agent-harness.ts';
import { every, movesCounter, refusal } from '../support/harness/plain-upstream.ts';

test('SIGHUP with an invalid file changes nothing and logs every error', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  await harness.startAgent();
  const daemon = harness.agent.process;
  await harness.agent.learn(['KEY']);
  writeFileSync(
    join(harness.directory, 'config.yaml'),
    'log: { level: loud }\nproducts: []\nsync: { fenze: 1s }\n',
  );
  daemon.signal('SIGHUP');
  const line = await daemon.said('the configuration is not valid: nothing changed');
  expect(line['errors']).toHaveLength(2);
  expect((await harness.agent.verify('KEY')).status).toBe(200);
  writeFileSync(join(harness.directory, 'config.yaml'), '{ not: [yaml');
  daemon.signal('SIGHUP');
  await expect.poll(() => daemon.lines.filter(({ errors }) => errors !== undefined).length).toBe(2);
  expect((await harness.agent.verify('KEY')).status).toBe(200);
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
});

test('SIGHUP applies the settings that it can, and logs which changed and which need a restart, but no secret', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  await harness.startAgent();
  const daemon = harness.agent.process;
  await harness.agent.learn(['KEY']);
  harness.upstream.rotateSecret('product', 'another-secret');
  await harness.reconfigure({
    listen: { tcp: '127.0.0.1:1', socket_mode: '0660' },
    upstream: { base_url: 'http://127.0.0.1:9' },
    products: [{ key: 'product', secret: 'another-secret' }],
    limits: { rate: '100', body_bytes: '32KiB' },
  });
  expect(await daemon.said('the configuration was reloaded')).toMatchObject({
    part: 'daemon',
    changed: ['products[0].secret', 'limits.rate'],
  });
  expect(await daemon.said('some changes take effect only after a restart')).toMatchObject({
    restart: ['listen.tcp', 'listen.socket_mode', 'upstream.base_url', 'limits.body_bytes'],
  });
  expect((await harness.agent.verify('KEY')).status).toBe(401);
  const headers = { 'product-secret-key': 'another-secret' };
  expect((await harness.agent.verify('KEY', headers)).status).toBe(200);
  expect((await harness.agent.change('usage', 'KEY', { ...headers, prefer: 'wait=30' })).status).toBe(200);
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
  expect(JSON.stringify(daemon.lines)).not.toMatch(new RegExp(`another-secret|"${secret}"`));
});

test('the waiting changes of a product whose key SIGHUP changes are delivered', async () => {
  const licenses = Array.from({ length: 12 }, (_, index) => `KEY-${index}`);
  await using harness = await startHarness({ licenses });
  await (await harness.startAgent()).learn(licenses);
  await harness.agent.ask('/admin/v1/sync/pause', 'post');
  await Promise.all(licenses.map((key) => harness.agent.change('usage', key)));
  // After a start each key is read first, so slowly that most reads still wait when the key changes.
  const agent = await harness.startAgent({ sync: { rate: 4 } });
  await agent.ask('/admin/v1/sync/resume', 'post');
  await harness.reconfigure({ products: [{ key: 'renamed', secret }] });
  await agent.atRest();
  expect(licenses.map((key) => harness.upstream.countsOf(key).net)).toEqual(licenses.map(() => 1));
  expect((await agent.status()).upstream).toMatchObject({ paused_products: [], last_error: null });
  expect(agent.process.lines.map(({ msg }) => msg)).not.toContain('the upstream refuses our credential');
  const line = await agent.process.said(
    'a product has a new key: its license keys and changes were moved to it',
  );
  expect(line).toMatchObject({ product: 'renamed', before: productKey });
});

test('a product that SIGHUP removes is not answered, and its waiting changes are sent when it is added again', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await agent.ask('/admin/v1/sync/pause', 'post');
  expect((await agent.change('usage', 'KEY')).status).toBe(200);
  // Often enough that the response cache answers.
  const verify = async (): Promise<unknown> => codeOf(await agent.verify('KEY', byAdmin));
  const byAdmin = { 'service-api-key': [], 'product-secret-key': [], ...agent.admin };
  for (let time = 0; time < 4; time += 1) expect(await verify()).toBeUndefined();
  await harness.reconfigure({ products: [{ key: 'another', secret: 'secret-of-another' }] });
  await agent.ask('/admin/v1/sync/resume', 'post');
  expect(await verify()).toBe('license_not_found');
  expect(codeOf(await agent.change('usage', 'KEY', byAdmin))).toBe('license_not_found');
  expect(codeOf(await agent.verify('KEY'))).toBe('credentials_invalid');
  expect((await agent.status()).outbox.pending).toBe(1);
  const line = await agent.process.said('a product is no longer configured: its changes wait');
  expect(line).toMatchObject({ product: productKey, operations: 1 });
  await harness.reconfigure({ products: [{ key: productKey, secret }] });
  await agent.atRest();
  expect(await verify()).toBeUndefined();
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
  const gone = await agent.process.said('a product is no longer configured: it has no waiting changes');
  expect(gone).toMatchObject({ level: 'info', product: 'another' });
});

test('removing the upstream from the configuration of an agent needs a restart', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  await harness.startAgent();
  const daemon = harness.agent.process;
  await harness.agent.learn(['KEY']);
  writeFileSync(
    join(harness.directory, 'config.yaml'),
    JSON.stringify({ state_dir: join(harness.directory, 'state'), log: { level: 'debug' } }),
  );
  daemon.signal('SIGHUP');
  const { restart } = await daemon.said('some changes take effect only after a restart');
  expect(restart).toContain('upstream.base_url');
  expect((await harness.agent.verify('KEY')).status).toBe(200);
  expect((await harness.agent.change('usage', 'KEY', { prefer: 'wait=30' })).status).toBe(200);
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
});

test('SIGHUP changes the log level', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  await harness.startAgent({});
  const daemon = harness.agent.process;
  await harness.agent.learn(['KEY']);
  const changes = (): number => daemon.lines.filter(({ msg }) => msg === 'changed').length;
  await harness.agent.change('usage', 'KEY');
  await expect.poll(changes).toBe(1);
  const whole = { state_dir: join(harness.directory, 'state'), ...harness.configuration };
  const products = [{ key: productKey, secret: 'another-secret' }];
  const quiet = { ...whole, products, log: { level: 'error' } };
  writeFileSync(join(harness.directory, 'config.yaml'), JSON.stringify(quiet));
  daemon.signal('SIGHUP');
  // At the new level the reload logs no line, so wait until it rejects the old secret.
  const headers = { 'product-secret-key': 'another-secret' };
  await eventually(async () => (await harness.agent.verify('KEY', headers)).status !== 401);
  expect((await harness.agent.change('usage', 'KEY', headers)).status).toBe(200);
  await harness.reconfigure({ products });
  // Log lines are written in order, so the line of the change would come before.
  expect(changes()).toBe(1);
});

test('SIGHUP ends the open breaker and the long backoff of the previous configuration', async () => {
  await using harness = await startHarness({ licenses: ['KEY', 'OTHER'] });
  const slow = { backoff: { first: '24d', max: '24d' }, breaker: { failures: 1, open: '24d' } };
  const agent = await harness.startAgent({ sync: slow });
  await agent.learn(['KEY', 'OTHER']);
  harness.upstream.fault = every(refusal(418), movesCounter);
  await agent.change('usage', 'KEY');
  await eventually(async () => (await agent.operations()).some(({ attempts }) => attempts > 0));
  harness.upstream.fault = () => undefined;
  await harness.proxy.become({ kind: 'refuse' });
  await agent.verify('NEVER-SEEN');
  await eventually(async () => (await agent.status()).upstream.breaker === 'open');
  await harness.proxy.become({ kind: 'pass' });
  await harness.reconfigure({ sync: { backoff: { first: '20ms', max: '200ms' } } });
  await agent.atRest();
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
  expect((await agent.status()).upstream).toMatchObject({ state: 'up', breaker: 'closed' });
});
