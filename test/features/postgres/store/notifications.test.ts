import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PersistentClock } from '../../../../src/daemon/system/clock.ts';
import { NotificationListener } from '../../../../src/features/postgres/store/notifications.ts';
import { startFaultProxy } from '../../../support/network/fault-proxy.ts';
import { hasPostgres, startPostgres, type PostgresServer } from '../support/postgres.ts';
import { buildActivation } from '../../leases/support/records.ts';
import { writerOn } from '../support/postgres-writer.ts';

describe.skipIf(!hasPostgres)('notifications between the nodes of an authority', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  test('are sent for what is remembered, and never for a sale, a use or a coupon', async () => {
    await using database = await server.store();
    await using elsewhere = await server.store();
    const own: string[] = [];
    const writer = writerOn(database, { onCredentialsChanged: () => own.push('changed') });
    const start = { adminTokenDigest: 'admin', place: 'here', apiKeyDigest: 'key' };
    await writer.write('startAuthority', start);
    const product = {
      accountId: 'default',
      name: 'Press',
      recurring: false,
      productKey: 'press',
      secret: null,
    };
    expect(await writer.write('addProduct', product)).toMatchObject({ ok: true });
    const received = Promise.withResolvers<void>();
    let count = 0;
    await using _ = new NotificationListener({
      address: server.address,
      names: database.names,
      clock: new PersistentClock(null),
      random: { fraction: () => 0.5 },
      onNotification() {
        count += 1;
        received.resolve();
      },
      onListening: () => undefined,
    });
    await received.promise;
    own.length = 0;
    const sale = { productKey: 'press', buyerEmail: 'a@example.com', soldAt: null, uses: 0, enabled: true };
    const idempotency = { credential: 'account:default', key: 'once', fingerprint: 'f' };
    await writer.write('addPurchase', { ...sale, licenseKey: 'KEY' });
    const use = {
      tenant: { accountId: 'default', productKey: null },
      licenseKey: 'KEY',
      trigger: 'usage',
    } as const;
    await writer.write('changeLicense', use);
    await writer.write('changeLicense', use, { idempotency });
    const token = {
      scopes: ['verify'] as const,
      productKey: null,
      accountId: null,
      label: null,
      expiresAt: null,
    };
    await writerOn(elsewhere).write('startAuthority', start);
    expect([count, own]).toEqual([1, []]);
    await writer.write('issueToken', { ...token, isAgent: false });
    await expect.poll(() => count).toBe(2);
    expect(own).toEqual(['changed']);
  });

  test('name the license that was disabled, enabled or renewed, or one of whose devices has lost its seat', async () => {
    await using database = await server.store();
    const writer = writerOn(database);
    await writer.write('startAuthority', { adminTokenDigest: 'admin', place: 'here', apiKeyDigest: 'key' });
    const product = {
      accountId: 'default',
      name: 'Press',
      recurring: false,
      productKey: 'press',
      secret: null,
    };
    await writer.write('addProduct', product);
    const sale = { productKey: 'press', buyerEmail: 'a@example.com', soldAt: null, uses: 0, enabled: true };
    expect(await writer.write('addPurchase', { ...sale, licenseKey: 'KÄY' })).toMatchObject({ ok: true });
    const received: (string | null)[] = [];
    await using _ = new NotificationListener({
      address: server.address,
      names: database.names,
      clock: new PersistentClock(null),
      random: { fraction: () => 0.5 },
      onNotification: (licenseKey) => received.push(licenseKey),
      onListening: () => undefined,
    });
    await expect.poll(() => received).toEqual([null]);
    const tenant = { accountId: 'default', productKey: null };
    for (const trigger of ['usage', 'disable', 'disable', 'enable'] as const) {
      await writer.write('changeLicense', { tenant, licenseKey: 'KÄY', trigger });
    }
    await expect.poll(() => received).toEqual([null, 'KÄY', 'KÄY']);
    const end = Date.UTC(2030, 0, 1);
    for (const change of [{ expiresAt: end }, { expiresAt: end }, { expiresAt: end + 1_000 }, { seats: 2 }]) {
      await writer.write('updateLicense', { tenant, licenseKey: 'KÄY', change });
    }
    await expect.poll(() => received.slice(3)).toEqual(['KÄY', 'KÄY', 'KÄY']);
    const activation = buildActivation({ licenseKey: 'KEY-1', productKey: 'press' });
    for (const state of ['active', 'active', 'ended', 'ended', 'blocked'] as const) {
      await database.query(
        `INSERT INTO ${database.names.of('activation')} (activation_id, license_key, product_key, device, state, seq, digest,
           answer, rev, expires_at, seat_until, uses_recorded, uses_returned, created_at, renewed_at, moved_at,
           challenged_at)
         VALUES ($1, $2, $3, $4, $5, 1, '', '{}', 1, 1, 1, 0, 0, 1, 1, '[]', '[]')
         ON CONFLICT (activation_id) DO UPDATE SET state = excluded.state, renewed_at = 2`,
        [activation.activationId, activation.licenseKey, activation.productKey, activation.device, state],
      );
    }
    await expect.poll(() => received.slice(6)).toEqual(['KEY-1', 'KEY-1']);
  });

  test('are listened for again on another connection when nothing comes on the one before', async () => {
    await using database = await server.store();
    await using proxy = await startFaultProxy(server.address.port);
    const hearing: boolean[] = [];
    const clock = new PersistentClock(null);
    await using _ = new NotificationListener({
      address: { ...server.address, host: '127.0.0.1', port: proxy.port },
      names: database.names,
      // Waits are short here, so that a connection is asked often.
      clock: { sleep: (ms, signal) => clock.sleep(ms / 50, signal) },
      random: { fraction: () => 0.5 },
      onNotification: () => undefined,
      onListening: (error) => hearing.push(error === null),
    });
    await expect.poll(() => proxy.connections).toBe(1);
    await proxy.become({ kind: 'blackhole' });
    await expect.poll(() => hearing).toEqual([false]);
    await proxy.become({ kind: 'pass' });
    await expect.poll(() => hearing).toEqual([false, true]);
  });
});
