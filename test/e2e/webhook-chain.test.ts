import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/harness/agent-harness.ts';
import { HttpGateway } from '../support/network/http-gateway.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** The `data` of a response that succeeded. */
function dataOf({ status, body }: { status: number; body: unknown }): Record<string, unknown> {
  expect(status).toBeLessThan(300);
  return (body as { data: Record<string, unknown> }).data;
}

test('a refund at an authority reaches an agent within seconds by the webhook that the authority sends', async () => {
  await using shop = temporaryDirectory();
  await using till = temporaryDirectory();
  const listen = { tcp: '127.0.0.1:0' };
  await using authority = await startDaemonProcess(shop.path, {
    listen,
    // The agent listens on this machine, in plain http.
    webhooks: { out: { allow: ['127.0.0.1/32'] } },
  });
  await using vendor = httpClient({ tcp: authority.tcp });
  const token = readFileSync(join(shop.path, 'state', 'admin.token'), 'utf8').trim();
  const admin = { authorization: `Bearer ${token}` };
  const post = async (path: string, json: object) =>
    dataOf(await vendor.post(`/admin/v1/${path}`, { headers: admin, json }));
  const { secret } = await post('products', { name: 'Press', product_key: 'RGsF' });
  const sale = await post('purchases', { product_key: 'RGsF', buyer_email: 'ada@example.com' });
  const { license_key: licenseKey } = sale['license'] as { license_key: string };

  // An agent that follows its keys gets a refund without a webhook.
  await using gateway = await HttpGateway.start(authority.tcp);
  gateway.instead = (_, path) => (path.startsWith('/sync/v1') ? { status: 404, body: '{}' } : null);
  const settings = {
    state_dir: join(till.path, 'state'),
    listen,
    upstream: { base_url: gateway.url, probe: '1h' },
    products: [{ key: 'RGsF', secret }],
  };
  await using agent = await startDaemonProcess(till.path, settings);
  await using caller = httpClient({ tcp: agent.tcp });
  const isEnabled = async () => {
    const path = `/api/v2/license/verify?license_key=${licenseKey}`;
    return dataOf(await caller.get(path, { headers: { 'product-secret-key': String(secret) } }))['enabled'];
  };
  await eventually(async () => (await isEnabled()) === true);

  const url = `${agent.tcp}/hooks/v1/authority`;
  const endpoint = await post('webhooks', { url, events: ['purchase.refunded'] });
  const webhooks = { in: { authority: { from: 'standard', secret: endpoint['secret'] } } };
  writeFileSync(join(till.path, 'config.yaml'), JSON.stringify({ ...settings, webhooks }));
  agent.signal('SIGHUP');
  await eventually(() => agent.lines.some(({ msg }) => msg === 'the configuration was reloaded'));

  await post(`purchases/${String(sale['purchase_id'])}/refund`, {});
  await eventually(async () => (await isEnabled()) === false);
  expect(agent.lines.find(({ webhook }) => webhook === 'authority')).toMatchObject({ result: 'accepted' });
});
