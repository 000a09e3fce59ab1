import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileRequests, jws, rawKey, type RawKey } from './support/hostile-requests.ts';
import {
  issuedKey,
  otherKey,
  RunningIssuer,
  type IssuerRole,
  type LeaseReply,
  type TestDevice,
} from './support/issuer-harness.ts';
import { engineOfProject } from '../../support/app/engine.ts';

// PostgreSQL has no agents.
/** The names of hostile requests do not depend on their claims. */
const hostileNames = Object.keys(
  hostileRequests(
    {
      aud: 'https://licenses.example.com',
      jti: 'A'.repeat(22),
      act: 'take',
      product_key: 'editor',
      license_key: issuedKey,
      seq: 1,
      device_name: 'laptop',
      uses: { recorded: 0, returned: 0 },
    },
    rawKey(),
  ),
);

/** The count of the license, as the API answers it. */
async function usesOf(issuer: RunningIssuer): Promise<number> {
  return await issuer.uses();
}

const roles: readonly IssuerRole[] = engineOfProject === null ? ['authority', 'agent'] : ['authority'];

let addresses = 0;
/** An address from which nothing was sent yet, so that no limit counts. */
function freshAddress(): { 'x-forwarded-for': string } {
  addresses += 1;
  return { 'x-forwarded-for': `203.0.113.${addresses}` };
}

function codeOf({ status, problem }: LeaseReply): [number, unknown] {
  return [status, problem['code']];
}

type Activation = { activation_id: string; state: string; has_seat: boolean; device_name: string };

async function activationsOf(issuer: RunningIssuer, query = ''): Promise<Activation[]> {
  const listed = await issuer.admin('GET', `/activations?limit=100${query}`);
  return (listed as { activations: Activation[] }).activations;
}

describe.each(roles)('an issuer that is an %s', (role) => {
  let issuer: RunningIssuer;
  beforeAll(async () => {
    issuer = await new RunningIssuer(role).start();
  });
  afterAll(() => issuer[Symbol.asyncDispose]());

  test('gives a device a lease, another one when it renews, and a notice when it ends', async () => {
    const device = await issuer.device();
    const taken = await device.ask('take');
    expect([taken.status, taken.problem]).toEqual([200, {}]);
    const { lease } = taken;
    expect(lease).toMatchObject({
      aud: 'editor',
      license: { license_key: issuedKey, enabled: true, buyer_email: '' },
      cnf: { jkt: device.key.kid },
      seats: null,
    });
    const renewed = await device.ask('renew', { nonce: 'n'.repeat(22) });
    expect(renewed.lease).toMatchObject({ sub: lease?.sub, nonce: 'n'.repeat(22) });
    expect(renewed.lease?.rev).toBeGreaterThan(lease?.rev ?? 0);
    const ended = await device.ask('end');
    expect(ended.notice).toMatchObject({ sub: lease?.sub, state: 'ended' });
    expect((await device.ask('renew')).notice).toMatchObject({ state: 'ended' });
  });

  test('answers a repeated request as before, and counts its uses once', async () => {
    const device = await issuer.device();
    await device.ask('take');
    const before = await usesOf(issuer);
    device.uses = { recorded: 3, returned: 1 };
    const request = await device.sign('renew');
    const first = await issuer.post(request, freshAddress());
    expect(first.lease?.license.uses).toBe(before + 2);
    expect((await issuer.post(request, freshAddress())).lease).toEqual(first.lease);
    await expect.poll(() => usesOf(issuer)).toBe(before + 2);
  });

  test('refuses a request out of sequence with what the device needs to continue', async () => {
    const device = await issuer.device();
    await device.ask('take');
    const refused = await issuer.post(await device.sign('renew', { seq: 7 }), freshAddress());
    expect(codeOf(refused)).toEqual([409, 'out_of_sequence']);
    expect(refused.sequence).toMatchObject({ last: 1, uses: { recorded: 0, returned: 0 } });
    expect(refused.problem).not.toHaveProperty('last');
    const challenge = String(refused.sequence?.challenge);
    expect((await issuer.post(await device.sign('renew', { challenge }), freshAddress())).status).toBe(200);
  });

  test('refuses a license key of another product like an unknown one', async () => {
    const device = await issuer.device();
    const answers = [];
    for (const license_key of [otherKey, 'ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ', '💥']) {
      const { status, problem } = await issuer.post(
        await device.sign('take', { license_key }),
        freshAddress(),
      );
      answers.push({ status, ...problem, request_id: '' });
    }
    for (const product_key of ['player', 'unknown']) {
      const { status, problem } = await issuer.post(
        await device.sign('take', { product_key }),
        freshAddress(),
      );
      answers.push({ status, ...problem, request_id: '' });
    }
    expect(answers[0]).toMatchObject({ status: 404, code: 'license_not_found' });
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  });

  describe('and a hostile caller', () => {
    let key: RawKey;
    let device: TestDevice;
    beforeAll(async () => {
      key = rawKey();
      device = await issuer.device('hostile');
      const first = jws(
        { alg: 'ES256', typ: 'latchkey-request+jwt', jwk: key.jwk },
        device.claims('take'),
        key,
      );
      await issuer.post(first, freshAddress());
      device.seq = 1;
    });

    test.each(hostileNames)('gets one clear problem, and changes and counts nothing: %s', async (name) => {
      const before = [await usesOf(issuer), await activationsOf(issuer)];
      const claims = device.claims('renew', { uses: { recorded: 5, returned: 0 } });
      const refused = await issuer.post(hostileRequests(claims, key)[name] ?? '', freshAddress());
      expect(codeOf(refused)).toEqual([422, 'lease_request_invalid']);
      expect(refused.problem['detail']).toMatch(/^[A-Z].{10,200}\.$/s);
      expect([await usesOf(issuer), await activationsOf(issuer)]).toEqual(before);
    });

    test.each([
      ['a total that goes back', { recorded: 0, returned: 0 }],
      ['a total that grows by more than 10,000', { recorded: 10_002, returned: 0 }],
    ])('is refused: %s', async (_, uses) => {
      const honest = await issuer.device();
      await honest.ask('take');
      honest.uses = { recorded: 1, returned: 0 };
      await honest.ask('renew');
      const before = await usesOf(issuer);
      // Restored stores may agree in the number and not in the totals, so the device may continue.
      const first = await issuer.post(await honest.sign('renew', { uses }), freshAddress());
      expect(codeOf(first)).toEqual([409, 'out_of_sequence']);
      const challenge = String(first.sequence?.challenge);
      const refused = await issuer.post(await honest.sign('renew', { uses, challenge }), freshAddress());
      expect(codeOf(refused)).toEqual([422, 'lease_request_invalid']);
      expect(await usesOf(issuer)).toBe(before);
      expect((await honest.ask('renew')).status).toBe(200);
    });
  });

  test('limits failures for each address, but never the renewals of a known device', async () => {
    const address = freshAddress();
    const device = await issuer.device();
    await issuer.post(await device.sign('take'), freshAddress());
    device.seq = 1;
    const failures = new Set<number>();
    // A slow machine gets tokens back meanwhile.
    for (let time = 0; time < 5_000 && !failures.has(429); time += 1)
      failures.add((await issuer.post('x.y.z', address)).status);
    expect(failures).toEqual(new Set([422, 429]));
    const limited = await issuer.post('x.y.z', address);
    expect(codeOf(limited)).toEqual([429, 'rate_limited']);
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    expect((await device.ask('renew', {}, address)).status).toBe(200);
    const another = await issuer.device();
    expect(codeOf(await issuer.post(await another.sign('take'), address))).toEqual([429, 'rate_limited']);
    expect(codeOf(await issuer.post('x.y.z', freshAddress()))).toEqual([422, 'lease_request_invalid']);
  });

  test('limits requests for seats of one license key, whatever their addresses', async () => {
    const statuses = new Set<number>();
    for (let time = 0; time < 65; time += 1) {
      const device = await issuer.device();
      const license_key = '00000-00000-00000-00000';
      const headers = { 'x-forwarded-for': `198.51.100.${time}` };
      statuses.add((await issuer.post(await device.sign('take', { license_key }), headers)).status);
    }
    expect(statuses).toContain(429);
  });

  test('limits all spellings of a license key together', async () => {
    const statuses = new Set<number>();
    for (let time = 0; time < 65; time += 1) {
      const device = await issuer.device();
      const license_key = `${' '.repeat(time % 8)}${'\u200B'.repeat(time / 8)}ZZZZZ-ZZZZZ-ZZZZZ-ZZZZ2`;
      const headers = { 'x-forwarded-for': `198.51.101.${time}` };
      statuses.add((await issuer.post(await device.sign('take', { license_key }), headers)).status);
    }
    expect(statuses).toContain(429);
  });

  test('counts nothing against a license key while the address is limited', async () => {
    const address = freshAddress();
    for (let time = 0; time < 5_000; time += 1)
      if ((await issuer.post('x.y.z', address)).status === 429) break;
    const license_key = 'ZZZZZ-ZZZZZ-ZZZZZ-ZZZZ3';
    const device = await issuer.device();
    const document = await device.sign('take', { license_key });
    for (let time = 0; time < 65; time += 1) await issuer.post(document, address);
    expect(codeOf(await issuer.post(document, freshAddress()))).toEqual([404, 'license_not_found']);
  });

  test('signs nothing before it is set up, and says so', async () => {
    await using unset = await new RunningIssuer(role).start({ isSetUp: false });
    const device = await unset.device();
    expect(codeOf(await unset.post(await device.sign('take')))).toEqual([503, 'leases_not_set_up']);
    expect(await unset.devices.get('/lease/v1/keys')).toMatchObject({ status: 503 });
    expect(await unset.daemon.status()).toMatchObject({ issuer: null });
  });
});

describe.each(roles)('the activations of an issuer that is an %s', (role) => {
  let issuer: RunningIssuer;
  beforeAll(async () => {
    issuer = await new RunningIssuer(role).start({ terms: { seats: 1 } });
  });
  afterAll(() => issuer[Symbol.asyncDispose]());

  test('are listed, shown, ended and blocked by people, with audit entries', async () => {
    const [first, second] = [await issuer.device('first'), await issuer.device('second')];
    const { lease } = await first.ask('take');
    const refused = await second.ask('take');
    expect(codeOf(refused)).toEqual([409, 'no_seat_left']);
    expect(refused.problem['holders']).toEqual([
      {
        activation_id: lease?.sub,
        device_name: 'first',
        last_seen: expect.stringMatching(/^\d{4}-/),
        frees_at: expect.stringMatching(/^\d{4}-/),
      },
    ]);
    const listed = await activationsOf(issuer, `&license_key=${issuedKey.toLowerCase()}&state=active`);
    expect(listed).toMatchObject([{ activation_id: lease?.sub, has_seat: true, device_name: 'first' }]);
    expect(await activationsOf(issuer, '&product_key=player')).toEqual([]);
    expect(await activationsOf(issuer, '&copied=true')).toEqual([]);
    const path = `/activations/${lease?.sub ?? ''}`;
    expect(await issuer.admin('GET', path)).toEqual(listed[0]);
    expect(await issuer.admin('POST', `${path}/end`)).toMatchObject({ state: 'ended', has_seat: false });
    expect((await second.ask('take')).lease).toMatchObject({ seats: { limit: 1, taken: 1 } });
    expect(await issuer.admin('POST', `${path}/block`)).toMatchObject({ state: 'blocked' });
    expect((await first.ask('renew')).notice).toMatchObject({ state: 'blocked' });
    expect(codeOf(await first.ask('take'))).toEqual([409, 'activation_blocked']);
    const audit = await issuer.admin('GET', '/audit?limit=10');
    const acts = (audit as { acts: { act: string }[] }).acts.map(({ act }) => act);
    expect(acts).toEqual(expect.arrayContaining(['activation.end', 'activation.block']));
    const status = await issuer.daemon.status();
    expect(status.issuer).toMatchObject({ issuer: issuer.issuer, version: 1, waiting: 0, seatsTaken: 1 });
  });

  test('that do not exist are 404', async () => {
    for (const [method, path] of [
      ['GET', '/activations/none'],
      ['POST', '/activations/none/end'],
      ['POST', '/activations/none/block'],
    ] as const) {
      const { status, body } = await issuer.tryAdmin(method, path);
      expect([status, body]).toMatchObject([404, { code: 'activation_not_found' }]);
    }
  });

  test('answer a request file until the end of a day', async () => {
    const device = await issuer.device('offline');
    const day = new Date(issuer.time.read().wall + 2 * 86_400_000).toISOString().slice(0, 10);
    const taken = await activationsOf(issuer, '&state=active');
    for (const { activation_id: id } of taken) await issuer.admin('POST', `/activations/${id}/end`);
    const json = { request: await device.sign('take'), until: day };
    const { status, body } = await issuer.tryAdmin('POST', '/leases', json);
    expect([status, body]).toMatchObject([200, { data: { lease: expect.any(String) } }]);
    const wrong = await issuer.tryAdmin('POST', '/leases', { ...json, unitl: day });
    expect([wrong.status, wrong.body]).toMatchObject([422, { code: 'parameters_invalid' }]);
  });
});

describe.each(roles)('a renewal that waits at an issuer that is an %s', (role) => {
  let issuer: RunningIssuer;
  let device: TestDevice;
  beforeAll(async () => {
    issuer = await new RunningIssuer(role).start({ terms: { seats: 50 } });
  });
  afterAll(() => issuer[Symbol.asyncDispose]());

  const waiting = async (): Promise<number> => (await issuer.daemon.status()).issuer?.waiting ?? -1;

  /** Sends a renewal, and resolves when it waits. */
  async function begin(signal?: AbortSignal): Promise<{ answer: Promise<LeaseReply> }> {
    const before = await waiting();
    const answer = issuer.post(await device.sign('renew'), { prefer: 'wait=30' }, signal);
    answer.catch(() => undefined);
    await expect.poll(waiting).toBe(before + 1);
    return { answer };
  }

  test('ends with a notice when the license is disabled, and with a lease when it is enabled', async () => {
    device = await issuer.device();
    await device.ask('take');
    const reply = await begin();
    await issuer.disable();
    expect((await reply.answer).notice).toMatchObject({ state: 'disabled' });
    device.seq += 1;
    const enabled = await begin();
    await issuer.enable();
    expect((await enabled.answer).lease).toMatchObject({ license: { enabled: true } });
    device.seq += 1;
    expect(await waiting()).toBe(0);
  });

  test.each(['end', 'block'])(
    'ends with a notice when an operator changes its activation: %s',
    async (act) => {
      device = await issuer.device();
      const { lease } = await device.ask('take');
      const { answer } = await begin();
      await issuer.admin('POST', `/activations/${lease?.sub ?? ''}/${act}`);
      expect((await answer).notice).toMatchObject({ state: act === 'end' ? 'ended' : 'blocked' });
    },
  );

  test('is 204 when its time is over, and the same document is answered later', async () => {
    device = await issuer.device();
    await device.ask('take');
    const request = await device.sign('renew');
    const answer = issuer.post(request, { prefer: 'wait=30' });
    await expect.poll(waiting).toBe(1);
    issuer.time.advance(31_000);
    expect((await answer).status).toBe(204);
    expect((await issuer.post(request)).lease).not.toBeNull();
  });

  test('goes on when another device renews', async () => {
    const other = await issuer.device();
    await other.ask('take');
    device = await issuer.device();
    await device.ask('take');
    const { answer } = await begin();
    expect((await other.ask('renew')).status).toBe(200);
    expect(await waiting()).toBe(1);
    issuer.time.advance(31_000);
    expect((await answer).status).toBe(204);
  });

  test('is forgotten when its caller leaves', async () => {
    device = await issuer.device();
    await device.ask('take');
    const leaving = new AbortController();
    const { answer } = await begin(leaving.signal);
    leaving.abort();
    await expect(answer).rejects.toThrow('abort');
    await expect.poll(waiting).toBe(0);
    expect((await device.ask('renew')).status).toBe(200);
  });

  test('does not wait with a use or a nonce, or if it is no renewal', async () => {
    device = await issuer.device();
    const wait = { prefer: 'wait=30' };
    expect((await device.ask('take', {}, wait)).status).toBe(200);
    expect((await device.ask('renew', { nonce: 'n'.repeat(22) }, wait)).status).toBe(200);
    device.uses = { recorded: 1, returned: 0 };
    expect((await device.ask('renew', {}, wait)).status).toBe(200);
    expect((await device.ask('end', {}, wait)).status).toBe(200);
  });

  test('ends at once when the process stops', async () => {
    await using stopping = await new RunningIssuer(role).start();
    const last = await stopping.device();
    await last.ask('take');
    const answer = stopping.post(await last.sign('renew'), { prefer: 'wait=30' });
    await expect.poll(async () => (await stopping.daemon.status()).issuer?.waiting).toBe(1);
    const stopped = stopping.daemon.stop();
    expect((await answer).status).toBe(204);
    await stopped;
  });
});
