import { ownerOnly } from '../../../support/platform.ts';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { startDaemon } from '../../../../src/daemon/start.ts';
import { databaseIn } from '../../../../src/store/sqlite/files/state-directory.ts';
import { configurationIn, licenseKey, VendorAndDevice } from '../support/vendor-and-device.ts';
import { latchkey } from '../../../support/process/command-line.ts';
import { silent } from '../../../support/silent-log.ts';

const lease = `/agent/v1/lease?license_key=${licenseKey}`;

test('a holder verifies a license key of the issuer, and counts its uses there', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  expect(await device.verify()).toEqual([200, true, 0, 'fresh']);
  expect(await device.use()).toEqual([200, 1]);
  await expect.poll(() => shop.uses()).toBe(1);
  const file = join(device.stateDir, 'device.jwk');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ kty: 'EC', crv: 'P-256' });
  expect((statSync(file).mode & 0o777).toString(8)).toBe(ownerOnly);
});

test('a disable at the issuer reaches a holder that waits there within seconds, and so does an enable', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  await device.verify();
  await shop.setEnabled(false);
  await expect.poll(() => device.verify(), { timeout: 10_000 }).toEqual([200, false, 0, 'fresh']);
  await shop.setEnabled(true);
  shop.time.advance(61_000);
  await expect.poll(() => device.verify(), { timeout: 10_000 }).toEqual([200, true, 0, 'fresh']);
});

test('activate ends with exit code 1 for a license that is disabled', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  const activate = (): ReturnType<typeof latchkey> =>
    latchkey('--state-dir', device.stateDir, 'activate', licenseKey);
  expect(await activate()).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^state +active$/m) as string,
  });
  await shop.setEnabled(false);
  const refused = { code: 1, out: expect.stringMatching(/^state +disabled$/m) as string, err: '' };
  await expect.poll(activate, { timeout: 10_000 }).toMatchObject(refused);
});

test('a holder answers from its lease while the issuer is away: fresh, then grace, then not at all', async () => {
  await using shop = await VendorAndDevice.start({ lease_term_s: 5 * 86_400 });
  const device = await shop.device();
  await device.verify();
  await shop.stopAuthority();
  expect(await device.verify()).toEqual([200, true, 0, 'fresh']);
  shop.time.advance(2 * 86_400_000);
  expect(await device.verify()).toEqual([200, true, 0, 'grace']);
  expect(await device.use()).toEqual([200, 1]);
  shop.time.advance(4 * 86_400_000);
  expect(await device.verify()).toEqual([503, 'verdict_expired']);
  expect(await device.use()).toEqual([503, 'verdict_expired']);
  await shop.startAuthority();
  expect(await device.verify()).toEqual([200, true, 1, 'fresh']);
  await expect.poll(() => shop.uses()).toBe(1);
});

test.each(['an authority', 'an agent'])(
  'a device answers as its issuer, %s, for a license with an end and entitlements, and goes on after a renewal',
  async (issuer) => {
    await using shop = await VendorAndDevice.start();
    const headers = { 'content-type': 'application/json' };
    const send = async (method: string, path: string, body: object): Promise<unknown> =>
      (await shop.admin({ method, headers, body: JSON.stringify(body) }, `licenses/${licenseKey}${path}`))
        .data;
    const end = Math.ceil(shop.time.read().wall / 1000) * 1000 + 3_600_000;
    const terms = { expires_at: new Date(end).toISOString(), entitlements: ['pro'], seats: 1 };
    const changed = await send('PUT', '', { ...terms, metadata: { note: 'late payer' } });
    const leases = issuer === 'an agent' ? await shop.issuingAgent() : {};
    const [device, other] = [await shop.device('first', leases), await shop.device('second', leases)];
    const answered = async (): Promise<unknown> =>
      (await device.call(`/api/v2/license/verify?license_key=${licenseKey}`)).data;
    const { metadata: _, seats: __, ...shown } = changed as Record<string, unknown>;
    expect(await answered()).toEqual({ ...shown, buyer_email: '' });
    expect(await other.verify()).toEqual([409, 'no_seat_left']);
    shop.time.advance(end + 1 - shop.time.read().wall);
    const ended = {
      enabled: false,
      status: 'expired',
      expires_at: shown['expires_at'],
      entitlements: ['pro'],
    };
    await expect.poll(answered, { timeout: 10_000 }).toMatchObject(ended);
    await send('POST', '/renew', { for: '1y' });
    shop.time.advance(61_000);
    await expect.poll(answered, { timeout: 10_000 }).toMatchObject({ enabled: true, status: 'active' });
    expect(await other.verify()).toEqual([409, 'no_seat_left']);
  },
);

test('a second device gets no seat until the first one gives its seat back', async () => {
  await using shop = await VendorAndDevice.start({ seats: 1 });
  const [first, second] = [await shop.device('first'), await shop.device('second')];
  expect(await first.verify()).toEqual([200, true, 0, 'fresh']);
  expect(await second.verify()).toEqual([409, 'no_seat_left']);
  const ended = await latchkey('--state-dir', first.stateDir, 'deactivate', licenseKey);
  expect(ended).toMatchObject({ code: 0, out: expect.stringContaining('ended') as string });
  expect(await first.verify()).toEqual([404, 'lease_not_found']);
  const taken = await latchkey('--state-dir', second.stateDir, 'activate', licenseKey);
  expect(taken).toMatchObject({ code: 0, out: expect.stringContaining('active') as string });
  expect(await second.verify()).toEqual([200, true, 0, 'fresh']);
  const refused = await latchkey('--state-dir', first.stateDir, 'activate', licenseKey);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('second, last seen') as string });
});

test('when no move is left, activate --replaces says from when the seat is free', async () => {
  await using shop = await VendorAndDevice.start({ seats: 1, hold_s: 0 });
  const [first, second] = [await shop.device('first'), await shop.device('second')];
  const take = async (): Promise<unknown> => {
    const taken = await latchkey('--state-dir', first.stateDir, 'activate', licenseKey, '--json');
    return (JSON.parse(taken.out) as { activation_id: unknown }).activation_id;
  };
  for (let move = 0; move < 3; move += 1) {
    await take();
    await latchkey('--state-dir', first.stateDir, 'deactivate', licenseKey);
  }
  const activationId = String(await take());
  await first.stop();
  shop.time.advance(2 * 86_400_000);
  const argv = ['activate', licenseKey, '--replaces', activationId];
  const refused = await latchkey('--state-dir', second.stateDir, ...argv);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('(no_move_left)') as string });
  expect(refused.err).toContain('The seat is free from ');
  const [, from = ''] = /^The seat is free from (\S+)$/m.exec(refused.err) ?? [];
  shop.time.advance(Date.parse(from) - shop.time.read().wall + 1000);
  expect(await latchkey('--state-dir', second.stateDir, ...argv)).toMatchObject({ code: 0 });
});

test('programs get the lease and a proof, and people the list of leases', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  expect((await device.call(lease)).data).toMatchObject({
    lease: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/) as string,
    keys: expect.any(String) as string,
  });
  const nonce = 'AAAAAAAAAAAAAAAAAAAAAA';
  const proven = await device.call(`${lease}&nonce=${nonce}`);
  const claims = (document: unknown): Record<string, unknown> =>
    JSON.parse(Buffer.from(String(document).split('.')[1] ?? '', 'base64url').toString()) as Record<
      string,
      unknown
    >;
  expect(claims(proven.data?.['proof'])).toMatchObject({ nonce });
  expect(claims(proven.data?.['lease'])).not.toHaveProperty('nonce');
  const fresh = await device.call(`${lease}&nonce=${nonce}`, { headers: { prefer: 'wait=5' } });
  expect(claims(fresh.data?.['lease'])).toMatchObject({ nonce });
  expect((await device.admin('/agent/v1/activations')).data).toEqual({
    activations: [expect.objectContaining({ license_key: licenseKey, state: 'active' })],
  });
  expect((await device.call('/agent/v1/activations')).status).toBe(401);
  const listed = await latchkey('--state-dir', device.stateDir, 'lease', 'list');
  expect(listed.out).toMatch(new RegExp(`${licenseKey} +RGsF +active`));
});

test('a machine without a network gets its lease, reports its uses and gives its seat back by files', async () => {
  await using shop = await VendorAndDevice.start({ seats: 1 });
  const device = await shop.device('offline', {
    issuer: shop.issuer,
    activate: 'explicit',
    proxy: 'http://127.0.0.1:9',
  });
  const request = join(shop.directory, 'machine.req');
  const answer = join(shop.directory, 'machine.lease');
  const exchange = async (...options: string[]): Promise<void> => {
    const made = await latchkey('--state-dir', device.stateDir, 'lease', 'request', licenseKey, ...options);
    expect(made).toMatchObject({ code: 0 });
    writeFileSync(request, made.out);
    const signed = await latchkey('--state-dir', shop.vendorState, 'lease', 'sign', request);
    expect(signed).toMatchObject({ code: 0 });
    writeFileSync(answer, signed.out);
    const installed = await latchkey('--state-dir', device.stateDir, 'lease', 'install', answer);
    expect(installed).toMatchObject({ code: 0 });
  };
  expect(await device.verify()).toEqual([404, 'lease_not_found']);
  await exchange();
  expect(await device.verify()).toEqual([200, true, 0, 'fresh']);
  expect(await device.use()).toEqual([200, 1]);
  await exchange();
  expect(await device.verify()).toEqual([200, true, 1, 'fresh']);
  expect(await shop.uses()).toBe(1);
  const other = await shop.device('other', { activate: 'explicit' });
  const foreign = await latchkey('--state-dir', other.stateDir, 'lease', 'install', answer);
  expect(foreign).toMatchObject({ code: 1, err: expect.stringContaining('another device') as string });
  await exchange('--end');
  expect(await device.verify()).toEqual([404, 'lease_not_found']);
  expect((await other.post('/agent/v1/activations', { license_key: licenseKey })).status).toBe(200);
});

test('a holder offers no coupons, no catalogue, and no change of the state of a license', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  await device.verify();
  expect(await device.put('/api/v2/license/disable', { license_key: licenseKey })).toMatchObject({
    status: 403,
    code: 'scope_missing',
  });
  expect(await device.call('/api/v2/coupons')).toMatchObject({ status: 501, code: 'not_offered_by_holder' });
  expect(await device.admin('/admin/v1/licenses')).toMatchObject({
    status: 501,
    code: 'not_offered_by_holder',
  });
  expect((await device.admin('/statusz')).status).toBe(200);
});

test('a repeated verify comes from the cache of responses, and shows each use at once', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  for (let uses = 0; uses < 3; uses += 1) {
    for (let repeat = 0; repeat < 4; repeat += 1)
      expect(await device.verify()).toEqual([200, true, uses, 'fresh']);
    expect(await device.use()).toEqual([200, uses + 1]);
  }
});

test('a holder whose key cannot be read does not start, and says what to do', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  await device.stop();
  writeFileSync(join(device.stateDir, 'device.jwk'), '{"kty":"EC"}');
  await expect(device.start()).rejects.toThrow(
    /device\.jwk in it is not a private P-256 key \(JWK\)\. Put the key back/,
  );
});

test('a state directory that is copied to another place keeps its key and its lease', async () => {
  await using shop = await VendorAndDevice.start({ seats: 1 });
  const device = await shop.device();
  await device.verify();
  const jwk = readFileSync(join(device.stateDir, 'device.jwk'), 'utf8');
  await device.stop();
  const copy = shop.machine('copy');
  copy.copyStateOf(device);
  await copy.start();
  expect(readFileSync(join(copy.stateDir, 'device.jwk'), 'utf8')).toBe(jwk);
  expect(await copy.verify()).toEqual([200, true, 0, 'fresh']);
  expect(await copy.use()).toEqual([200, 1]);
  await expect.poll(() => shop.uses()).toBe(1);
});

test('the store of a holder is not used by another role', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  await device.stop();
  const configuration = configurationIn(join(shop.directory, 'other'), {
    state_dir: device.stateDir,
    listen: { tcp: '127.0.0.1:0', socket: false },
  });
  await expect(startDaemon(configuration, { log: silent })).rejects.toThrow(
    "it is a holder's, and the configuration has no upstream: put leases.issuer back",
  );
});

test('doctor examines the issuer, its keys, and the leases of a holder', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  await device.verify();
  const config = ['--config', join(device.directory, 'config.json')];
  const healthy = await latchkey(...config, 'doctor');
  expect(healthy.out).toContain(
    `the issuer ${shop.issuer} answers; a root key of the vendor has signed its keys (version 1)`,
  );
  expect(healthy.out).toMatch(/the lease of activation \S+ is valid until/);
  await shop.stopAuthority();
  const away = await latchkey(...config, 'doctor');
  expect(away).toMatchObject({ code: 1, out: expect.stringContaining('cannot be reached') as string });
  expect(away.out).not.toContain(licenseKey);
  const status = await latchkey(...config, 'status');
  expect(status.out).toMatch(new RegExp(`^issuer +${shop.issuer}, last success`, 'm'));
});

test('a lease that was changed in the store is called not proven by lease list and doctor', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device();
  await device.verify();
  await device.stop();
  await shop.stopAuthority();
  {
    using database = new DatabaseSync(databaseIn(device.stateDir));
    const [row] = database.prepare('SELECT document FROM held_lease').all() as { document: string }[];
    const document = JSON.parse(row?.document ?? '') as { text: string };
    const [header, payload = '', signature] = document.text.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
    const forged = Buffer.from(JSON.stringify({ ...claims, exp: 4_000_000_000 })).toString('base64url');
    const changed = { ...document, text: [header, forged, signature].join('.'), expiresAt: 4e12 };
    database.prepare('UPDATE held_lease SET document = ?').run(JSON.stringify(changed));
  }
  const config = ['--config', join(device.directory, 'config.json')];
  const examined = await latchkey(...config, 'doctor');
  expect(examined.out).toMatch(/the lease of activation \S+ is not proven: /);
  expect(examined.out).not.toContain('is valid until');
  await device.start();
  const listed = await latchkey('--state-dir', device.stateDir, 'lease', 'list');
  expect(listed.out).toMatch(new RegExp(`${licenseKey} +RGsF +waiting .*The stored lease is not proven: `));
  expect(await device.verify()).toEqual([503, 'verdict_expired']);
  await shop.startAuthority();
  await expect.poll(() => device.verify(), { timeout: 10_000 }).toEqual([200, true, 0, 'fresh']);
});

test('an agent in front of a store issues leases as well, and its store gets the uses and ends the lease', async () => {
  await using shop = await VendorAndDevice.start();
  const device = await shop.device('laptop', await shop.issuingAgent());
  expect(await device.verify()).toEqual([200, true, 0, 'fresh']);
  expect(await device.use()).toEqual([200, 1]);
  await expect.poll(() => shop.uses()).toBe(1);
  await shop.setEnabled(false);
  // Later than `freshness.refresh`, the agent reads the store again.
  shop.time.advance(8 * 3_600_000);
  await expect.poll(() => device.verify()).toEqual([200, false, 1, 'fresh']);
});
