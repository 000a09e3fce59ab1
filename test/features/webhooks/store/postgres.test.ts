import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dayMs } from '../../../../src/domain/time.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../../postgres/support/postgres.ts';
import { openNodes, writerOn } from '../../postgres/support/postgres-writer.ts';

describe.skipIf(!hasPostgres)('the events of an authority with several nodes', () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  const types = null;

  test('an endpoint that is added before an event is committed takes the event from no other endpoint', async () => {
    await using databases = await openNodes(server, 2);
    const [first, second] = databases;
    if (first === undefined || second === undefined) throw new Error('there are no nodes');
    const writer = writerOn(second);
    const add = async (url: string) => {
      const added = await writer.write('addWebhook', { url, types });
      if (!added.ok) throw new Error(added.problem.detail);
      return added.value.endpointId;
    };
    const endpointId = await add('https://one.example/');
    const claim = async () =>
      await writer.write('claimDelivery', { endpointId, claim: 'claim', isAlone: false });
    const adding = await first.lend(async (connection) => {
      await connection.begin(null, []);
      const { webhooks } = connection.transaction;
      await webhooks.addEvent({ type: 'upstream.down', subject: null, eventId: 'event', at: 0 });
      expect(await webhooks.lastNumber()).toBeGreaterThan(0);
      const other = add('https://two.example/');
      // Without a lock it is added by now.
      await Promise.race([other, new Promise((resolve) => setTimeout(resolve, 300))]);
      expect(await claim()).toMatchObject({ value: null });
      await connection.commit();
      return { other };
    });
    await adding.other;
    expect(await claim()).toMatchObject({ value: { event: { eventId: 'event' } } });
  });

  test('events are removed after 30 days, also those whose numbers are in the future', async () => {
    await using databases = await openNodes(server, 1);
    const [database] = databases;
    if (database === undefined) throw new Error('there is no node');
    const added = await writerOn(database).write('addWebhook', { url: 'https://one.example/', types });
    const now = added.ok ? added.value.createdAt : 0;
    const report = async (eventId: string, at: number): Promise<void> => {
      await database.lend(async (connection) => {
        await connection.begin(null, []);
        await connection.transaction.webhooks.addEvent({ type: 'upstream.up', subject: null, eventId, at });
        await connection.commit();
      });
    };
    for (const [eventId, at] of Object.entries({ ahead: now + 365 * dayMs, old: now, new: now + dayMs }))
      await report(eventId, at);
    const removed = await writerOn(database).write('pruneEvents', { before: now + 1, limit: 10 });
    expect(removed).toMatchObject({ value: { removed: 1 } });
    const { webhooks } = database.reader;
    const ahead = await webhooks.next(0, null);
    expect(ahead?.eventId).toBe('ahead');
    expect((await webhooks.next(ahead?.number ?? 0, null))?.eventId).toBe('new');
  });
});
