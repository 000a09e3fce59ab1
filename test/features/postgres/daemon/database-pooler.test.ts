import { expect, test } from 'vitest';
import { sellOne, startNode, type AuthorityNode } from '../support/nodes.ts';
import { hasPooler, startPooler } from '../support/pooler.ts';
import { hasPostgres, startPostgres } from '../support/postgres.ts';
import { urlOf } from '../support/postgres-url.ts';

if (!hasPooler) process.stderr.write('PgBouncer is not installed: its tests are skipped.\n');

test.skipIf(!hasPostgres || !hasPooler)(
  'Nodes behind PgBouncer in transaction mode count exactly, and get the notifications of other nodes.',
  async () => {
    await using server = await startPostgres();
    await using pooler = await startPooler(server.address, 'transaction');
    const postgres = {
      url: urlOf({ ...server.address, host: '127.0.0.1', port: pooler.port }),
      listen_url: urlOf(server.address),
      schema: 'pooled',
    };
    await using one = await startNode(server, postgres);
    await using other = await startNode(server, postgres);
    const licenseKey = await sellOne(one);
    const use = async (key?: string): Promise<number[]> => {
      const change = { method: 'PUT', body: { license_key: licenseKey }, ...(key !== undefined && { key }) };
      const ask = async (node: AuthorityNode): Promise<number> => {
        const { status } = await node.call('/api/v2/license/usage', change);
        // On a slow machine, the first request with this key takes longer than the second request waits.
        return status === 409 && key !== undefined ? await ask(node) : status;
      };
      return await Promise.all([one, other].map(ask));
    };
    const verify = (token: string) =>
      other.call(`/api/v2/license/verify?license_key=${licenseKey}`, { token });
    const rounds = Array.from({ length: 25 }, async (_, index) => {
      expect(await use()).toEqual([200, 200]);
      expect(await use(`twice-${index}`)).toEqual([200, 200]);
      expect((await verify(other.adminToken)).status).toBe(200);
    });
    await Promise.all(rounds);
    const { data } = (await (await verify(other.adminToken)).json()) as { data: { uses: number } };
    expect(data.uses).toBe(75);
    const issued = await one.call('/admin/v1/tokens', { body: { scopes: ['verify'] } });
    const token = ((await issued.json()) as { data: { token: string; token_id: string } }).data;
    expect((await verify(token.token)).status).toBe(200);
    await one.call(`/admin/v1/tokens/${token.token_id}`, { method: 'DELETE' });
    await expect.poll(async () => (await verify(token.token)).status).toBe(401);
  },
);
