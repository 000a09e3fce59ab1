import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { keyPair, leaseIssuer, setUpIssuer } from '../../leases/support/lease-builders.ts';
import {
  issuedKey,
  issuedProduct,
  postRequest,
  TestDevice,
  type LeaseReply,
} from '../../leases/support/issuer-harness.ts';
import { keysIn, startIssuer } from '../../leases/support/private-keys.ts';
import { httpClient } from '../../../support/network/raw-http.ts';
import { startNode, type AuthorityNode } from '../support/nodes.ts';
import { urlOf } from '../support/postgres-url.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { latchkey } from '../../../support/process/command-line.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

describe.skipIf(!hasPostgres)('A device that waits at one node of an issuer', () => {
  const opened = new AsyncDisposableStack();
  let server: PostgresServer;
  let here: AuthorityNode;
  let there: AuthorityNode;
  let purchaseId = '';
  /** Sends its requests to the node `here`. */
  let device: TestDevice;
  let activationId = '';

  beforeAll(async () => {
    server = opened.use(await startPostgres());
    const { path } = opened.use(temporaryDirectory());
    await setUpIssuer(path, Date.now());
    const settings = { leases: { signing_dir: join(path, 'signing') } };
    here = opened.use(await startNode(server, { schema: 'waiting' }, { settings }));
    there = opened.use(await startNode(server, { schema: 'waiting' }, { settings }));
    await change('/admin/v1/products', { name: 'Editor', product_key: issuedProduct, seats: 3 });
    const sale = { product_key: issuedProduct, license_key: issuedKey, buyer_email: 'a@example.com' };
    purchaseId = String((await change('/admin/v1/purchases', sale))['purchase_id']);
    const client = opened.use(httpClient({ tcp: here.daemon.addresses.tcp ?? '' }));
    const issuer = {
      issuer: leaseIssuer,
      post: (...request: [string, Record<string, string>?]) => postRequest(client, ...request),
    };
    device = new TestDevice(issuer, await keyPair(), 'laptop');
    activationId = (await device.ask('take')).lease?.sub ?? '';
  });
  afterAll(() => opened.disposeAsync());

  /** Changes records at the node `there`. */
  async function change(path: string, body: object, method = 'POST'): Promise<Record<string, unknown>> {
    const answer = await there.call(path, { method, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${text}`);
    return (JSON.parse(text) as { data: Record<string, unknown> }).data;
  }

  /** The answer to a renewal that waits at the node `here` when a record is changed at the node `there`. */
  async function answerAfter(path: string, body: object, method?: string): Promise<LeaseReply> {
    const answer = device.ask('renew', {}, { prefer: 'wait=30' });
    answer.catch(() => undefined);
    await expect.poll(async () => (await here.daemon.status()).issuer?.waiting).toBe(1);
    await change(path, body, method);
    const reply = await answer;
    expect((await here.daemon.status()).issuer?.waiting).toBe(0);
    return reply;
  }

  test('gets a notice after a refund at another node, and a lease when the license is enabled there.', async () => {
    const refunded = await answerAfter(`/admin/v1/purchases/${purchaseId}/refund`, {});
    expect(refunded).toMatchObject({ lease: null, notice: { state: 'disabled', sub: activationId } });
    const enabled = await answerAfter('/api/v2/license/enable', { license_key: issuedKey }, 'PUT');
    expect(enabled).toMatchObject({ notice: null, lease: { sub: activationId } });
  });

  test('gets a notice when an operator ends its activation at another node.', async () => {
    const ended = await answerAfter(`/admin/v1/activations/${activationId}/end`, {});
    expect(ended).toMatchObject({ lease: null, notice: { state: 'ended', sub: activationId } });
  });
});

test.skipIf(!hasPostgres)(
  'A move to PostgreSQL takes the activations of an issuer, and no private key.',
  async () => {
    await using issuer = await startIssuer();
    await using server = await startPostgres();
    const { shop, keys, activationId } = issuer;
    await shop.stopAuthority();
    const url = join(shop.directory, 'url');
    writeFileSync(url, urlOf(server.address), { mode: 0o600 });
    const moved = await latchkey('store', 'move', '--state-dir', shop.vendorState, '--to-file', url);
    expect(moved).toMatchObject({ code: 0, err: '' });
    await using database = new Database(server.settings({ schema: 'latchkey' }));
    const [schema] = await database.query(`SELECT schema_to_xml('latchkey', true, false, '')::text AS rows`);
    const rows = Buffer.from(String(schema?.['rows']));
    expect([rows.includes(activationId), keysIn(rows, keys)]).toEqual([true, []]);
  },
);
