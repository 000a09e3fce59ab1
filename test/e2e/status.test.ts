import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProcess } from '../support/process/command-line.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { eventually, startHarness, secret } from '../support/harness/agent-harness.ts';
import { operate } from '../support/app/people.ts';

test('status reports the upstream, the outbox and the records of an agent', async () => {
  const licenses = ['KEY', { licenseKey: 'DISABLED', enabled: false }];
  await using harness = await startHarness({ licenses });
  const startedAt = Date.now();
  const agent = await harness.startAgent();
  await agent.learn(['KEY', 'DISABLED']);
  const up = await agent.status();
  expect(up.upstream).toMatchObject({ state: 'up', breaker: 'closed', last_error: null });
  expect(up.outbox).toEqual({
    pending: 0,
    in_flight: 0,
    uncertain: 0,
    held: 0,
    inferred: 0,
    conflicted: 0,
    dead: 0,
    delivered: 0,
    oldest_age_s: null,
  });
  expect(up.totals).toMatchObject({ verifies: 2, uses: 0 });
  expect(up.records).toEqual({ fresh: 1, stale: 0, grace: 0, expired: 0, disabled: 1 });
  for (const at of [up.upstream.since, up.upstream.last_success_at ?? '']) {
    // The response has whole seconds.
    expect(Date.parse(at)).toBeGreaterThanOrEqual(startedAt - 1000);
    expect(Date.parse(at)).toBeLessThanOrEqual(Date.now());
  }

  await harness.proxy.become({ kind: 'refuse' });
  const wentAt = Date.now();
  await agent.change('usage', 'KEY');
  await eventually(async () => (await agent.status()).upstream.breaker === 'open');
  const down = await agent.status();
  expect(down.upstream.state).toBe('down');
  expect(Date.parse(down.upstream.since)).toBeGreaterThanOrEqual(wentAt - 1000);
  expect(down.upstream.last_error).toMatch(/./);
  expect(Date.parse(down.upstream.last_success_at ?? '')).toBeLessThanOrEqual(
    Date.parse(down.upstream.since) + 1000,
  );
  // The breaker opens before the result of the operation is committed.
  await eventually(async () => {
    const { pending, in_flight } = (await agent.status()).outbox;
    return pending === 1 && in_flight === 0;
  });
  await eventually(async () => ((await agent.status()).outbox.oldest_age_s ?? 0) >= 1);
  const later = await agent.status();
  expect(later.upstream).toMatchObject({ since: down.upstream.since, state: 'down' });

  await harness.proxy.become({ kind: 'pass' });
  await agent.atRest();
  await eventually(async () => (await agent.status()).upstream.state === 'up');
  const { upstream: well, outbox, totals } = await agent.status();
  expect(outbox).toMatchObject({ pending: 0, delivered: 1, oldest_age_s: null });
  expect(totals.uses).toBe(1);
  expect(well.last_error).toMatch(/./);
  expect(Date.parse(well.recovered_at ?? '')).toBeGreaterThanOrEqual(Date.parse(well.last_error_at ?? ''));
});

test('status names the credentials that the upstream refuses and the remedy, until the credentials are accepted', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  await agent.createCoupon({ code: 'FIRST' });
  harness.upstream.rotateSecret('product', 'another-secret');
  harness.upstream.rotateApiKey('another-key');
  await agent.change('usage', 'KEY');
  await agent.createCoupon({ code: 'SECOND' });
  await eventually(async () => {
    const { upstream } = await agent.status();
    return upstream.paused_products.length === 1 && upstream.coupons_paused;
  });
  expect((await agent.status()).upstream).toMatchObject({ state: 'up', paused_products: ['product'] });
  const told = await operate(harness.directory, 'status');
  expect(told.out).toMatch(/^fail  the upstream refuses the secret of the product product: .*sync resume$/m);
  expect(told.out).toMatch(/^fail  the upstream refuses the API key: .*sync resume$/m);
  expect(told.out).not.toContain(secret);

  // Both remedies that status names: change the configuration, or accept the old credentials again.
  harness.upstream.rotateSecret('product', secret);
  harness.upstream.rotateApiKey('api-key');
  expect((await operate(harness.directory, 'sync', 'resume')).code).toBe(0);
  await agent.atRest();
  await eventually(async () => {
    await agent.createCoupon({ code: 'THIRD' });
    return !(await agent.status()).upstream.coupons_paused;
  });
  expect((await agent.status()).upstream.paused_products).toEqual([]);
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
});

test('the startup log and the status name the proxy to the upstream without its password', async () => {
  await using directory = temporaryDirectory();
  const configuration = {
    listen: { tcp: false },
    upstream: { base_url: 'https://store.example' },
    products: [{ key: 'EDITOR', secret }],
  };
  const environment = { HTTPS_PROXY: 'http://ada:hush@127.0.0.1:9', NO_PROXY: '10.0.0.0/8' };
  await using daemon = await startDaemonProcess(directory.path, configuration, environment);
  expect(await daemon.said('connections to the upstream use a proxy')).toMatchObject({
    proxy: 'http://127.0.0.1:9',
    from: 'HTTPS_PROXY',
  });
  const argv = ['status', '--config', join(directory.path, 'config.yaml')];
  const [shown, json] = [await runProcess(argv), await runProcess([...argv, '--json'])];
  expect(shown.out).toMatch(/^proxy +http:\/\/127\.0\.0\.1:9$/m);
  expect(JSON.parse(json.out)).toMatchObject({ upstream: { proxy: 'http://127.0.0.1:9' } });
  expect(
    [shown.out, json.out, daemon.lines.map((line) => JSON.stringify(line)).join('')].join(),
  ).not.toContain('hush');
});

test('an agent calls its upstream once at startup, so that status shows whether the upstream is up', async () => {
  await using harness = await startHarness({ configuration: { upstream: { api_key: null, probe: '1h' } } });
  const agent = await harness.startAgent();
  await eventually(async () => (await agent.status()).upstream.state === 'up');
  expect((await agent.status()).upstream.last_success_at).not.toBeNull();
  expect(harness.upstream.ledger.length).toBe(1);
});
