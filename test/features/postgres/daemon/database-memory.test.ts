import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { machineTime, type TimeSource } from '../../../../src/daemon/system/clock.ts';
import { Database } from '../../../../src/features/postgres/store/database.ts';
import { sellOne, startNode, type AuthorityNode } from '../support/nodes.ts';
import { startFaultProxy } from '../../../support/network/fault-proxy.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';

/** Clocks that move only when a test calls `pass`, so that cached values do not expire by themselves. */
function manualTime(): TimeSource & { pass(ms: number): void } {
  const reading = machineTime.read();
  return {
    read: () => ({ ...reading }),
    sleep: (ms, signal) => machineTime.sleep(ms, signal),
    pass(ms) {
      reading.wall += ms;
      reading.monotonic += ms;
    },
  };
}

type Token = { token: string; token_id: string };

async function issue(node: AuthorityNode): Promise<Token> {
  const issued = await node.call('/admin/v1/tokens', { body: { scopes: ['verify'] } });
  return ((await issued.json()) as { data: Token }).data;
}

describe.skipIf(!hasPostgres)('The credential cache of a node', () => {
  let server: PostgresServer;
  let schema = '';
  let made = 0;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    made += 1;
    schema = `memory_${made}`;
  });

  /** Verifies a license with a token or with headers, and returns the status. */
  async function verify(
    node: AuthorityNode,
    licenseKey: string,
    as: string | Record<string, string>,
  ): Promise<number> {
    const credential = typeof as === 'string' ? { token: as } : { headers: as };
    const path = `/api/v2/license/verify?license_key=${licenseKey}`;
    const answer = await node.call(path, credential);
    await answer.arrayBuffer();
    return answer.status;
  }

  /** Deletes a token in the database without a notification. */
  async function removeSilently({ token_id: tokenId }: Token): Promise<void> {
    await using database = new Database({ ...server.settings(), schema });
    await database.query(`DELETE FROM ${database.names.of('token')} WHERE token_id = $1`, [tokenId]);
  }

  test('The node that revokes a token refuses the token at once, and every other node after its notification.', async () => {
    await using one = await startNode(server, { schema }, { time: manualTime() });
    await using other = await startNode(server, { schema }, { time: manualTime() });
    const licenseKey = await sellOne(one);
    let dropped = '';
    const isCached = async (): Promise<boolean> => {
      const issued = await issue(one);
      dropped = issued.token;
      const found = await verify(other, licenseKey, dropped);
      await removeSilently(issued);
      return found === 200 && (await verify(other, licenseKey, dropped)) === 200;
    };
    // The notification of an earlier change may arrive late.
    await expect.poll(isCached).toBe(true);
    const revoked = await issue(one);
    for (const node of [one, other]) expect(await verify(node, licenseKey, revoked.token)).toBe(200);
    const answer = await one.call(`/admin/v1/tokens/${revoked.token_id}`, { method: 'DELETE' });
    expect(answer.ok).toBe(true);
    expect(await verify(one, licenseKey, revoked.token)).toBe(401);
    await expect.poll(() => verify(other, licenseKey, revoked.token)).toBe(401);
    expect(await verify(other, licenseKey, dropped)).toBe(401);
  });

  test('A node refuses an API key and a product secret after another node has rotated them.', async () => {
    await using one = await startNode(server, { schema }, { time: manualTime() });
    await using other = await startNode(server, { schema }, { time: manualTime() });
    const licenseKey = await sellOne(one);
    const rotateSecret = async (): Promise<string> => {
      const rotated = await one.call('/admin/v1/products/press/rotate-secret', { body: {} });
      return /lk_prod_\w+/.exec(await rotated.text())?.[0] ?? '';
    };
    const product = { 'product-secret-key': await rotateSecret() };
    const account = { 'service-api-key': one.apiKey ?? '' };
    const list = async (): Promise<number> =>
      (await other.call('/api/v2/coupons', { headers: account })).status;
    expect(await verify(other, licenseKey, product)).toBe(200);
    expect(await list()).toBe(200);
    await rotateSecret();
    await one.call('/admin/v1/accounts/default/rotate-key', { body: {} });
    await expect.poll(() => verify(other, licenseKey, product)).toBe(401);
    await expect.poll(list).toBe(401);
  });

  test('Without notifications a node caches credentials for at most a second, and it clears the cache when it listens again.', async () => {
    await using proxy = await startFaultProxy(server.address.port);
    const { user, password, database } = server.address;
    const listenUrl = `postgres://${user}:${password}@127.0.0.1:${proxy.port}/${database}?sslmode=disable`;
    const time = manualTime();
    await using one = await startNode(server, { schema });
    await using deaf = await startNode(server, { schema, listen_url: listenUrl }, { time });
    await expect.poll(() => proxy.connections).toBe(1);
    await proxy.become({ kind: 'refuse' });
    const licenseKey = await sellOne(one);
    const revoked = await issue(one);
    expect(await verify(deaf, licenseKey, revoked.token)).toBe(200);
    await one.call(`/admin/v1/tokens/${revoked.token_id}`, { method: 'DELETE' });
    time.pass(999);
    expect(await verify(deaf, licenseKey, revoked.token)).toBe(200);
    time.pass(1);
    expect(await verify(deaf, licenseKey, revoked.token)).toBe(401);
    const silent = await issue(one);
    expect(await verify(deaf, licenseKey, silent.token)).toBe(200);
    await removeSilently(silent);
    expect(await verify(deaf, licenseKey, silent.token)).toBe(200);
    await proxy.become({ kind: 'pass' });
    await expect.poll(() => verify(deaf, licenseKey, silent.token)).toBe(401);
  });

  test('Licenses are not cached: a change at one node shows at once at another node.', async () => {
    await using one = await startNode(server, { schema }, { time: manualTime() });
    await using other = await startNode(server, { schema }, { time: manualTime() });
    const licenseKey = await sellOne(one);
    const enabled = async (): Promise<unknown> => {
      const answer = await other.call(`/api/v2/license/verify?license_key=${licenseKey}`);
      return ((await answer.json()) as { data: { enabled: boolean } }).data.enabled;
    };
    expect(await enabled()).toBe(true);
    const change = { method: 'PUT', body: { license_key: licenseKey } };
    for (const [kind, isEnabled] of [
      ['disable', false],
      ['enable', true],
    ] as const) {
      expect((await one.call(`/api/v2/license/${kind}`, change)).status).toBe(200);
      expect(await enabled()).toBe(isEnabled);
    }
  });
});
