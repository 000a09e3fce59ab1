import { expect, it } from 'vitest';
import { ConfigurationError, connect, type LeaseTrust, type LeaseVerdict } from '../../src/client/index.ts';
import {
  problem,
  startFakeHolder,
  startHolderWith,
  type FakeHolder,
} from '../features/leases/support/fake-holder.ts';
import { makeLeaseVectors, type LeaseVector } from '../features/leases/support/vectors.ts';

const made = makeLeaseVectors();
const { vectors, issuer, product, roots, minKeysVersion } = made;
const trust: LeaseTrust = { issuer, product, roots, minKeysVersion };

function vector(name: string): LeaseVector {
  const found = vectors.find((each) => each.name === name);
  if (found === undefined) throw new Error(`There is no answer with the name ${name}.`);
  return found;
}

function summary(said: LeaseVerdict): string {
  return said.verdict === 'valid' ? 'valid' : `${said.verdict}: ${said.reason}`;
}

/** A client without any secret. */
const clientOf = ({ url }: FakeHolder, leases = trust) => connect({ url, leases });

it('a program without a secret gets the verdict of each answer from a holder', async () => {
  await using holder = await startFakeHolder(made);
  for (const { name, typed, expected } of vectors) {
    const isRefused = ['disabled', 'ended', 'blocked', 'replaced', 'license_expired'].includes(expected);
    const other = isRefused
      ? `refused: ${expected === 'license_expired' ? 'expired' : expected}`
      : `undetermined: ${expected === 'expired' ? expected : 'not_proven'}`;
    // A client that has seen a newer key statement would refuse the others from then on.
    const said = summary(await clientOf(holder).lease(typed));
    expect([name, said]).toEqual([name, expected === 'valid' ? 'valid' : other]);
  }
});

it('a client that has seen a newer key statement refuses the older one from then on', async () => {
  await using holder = await startFakeHolder(made);
  const client = clientOf(holder);
  const [older, newer] = [vector('a lease and its proof'), vector('a newer key statement')];
  expect(summary(await client.lease(older.typed))).toBe('valid');
  expect(await client.lease(newer.typed)).toMatchObject({ verdict: 'valid', keysVersion: 9 });
  expect(await client.lease(older.typed)).toMatchObject({
    verdict: 'undetermined',
    reason: 'not_proven',
    error: { code: 'old_keys', isTemporary: false },
  });
});

it('each call sends another nonce, and a recorded answer proves nothing', async () => {
  const { typed, answer } = vector('a lease and its proof');
  let recorded: object | null = null;
  await using holder = await startHolderWith((_, nonce) => ({
    body: { data: (recorded ??= answer(nonce)) },
  }));
  const client = clientOf(holder);
  expect(summary(await client.lease(typed))).toBe('valid');
  expect(await client.lease(typed)).toMatchObject({
    verdict: 'undetermined',
    reason: 'not_proven',
    error: { code: 'wrong_nonce' },
  });
  const nonces = holder.asked.map(({ query }) => query.get('nonce') ?? '');
  expect(new Set(nonces).size).toBe(2);
  for (const nonce of nonces) expect(nonce).toMatch(/^[\w-]{43}$/);
  expect(holder.asked[0]?.query.get('product_key')).toBe(product);
});

it('a server that only says that a license is valid proves nothing', async () => {
  await using holder = await startHolderWith(() => ({ body: { data: { enabled: true, uses: 1 } } }));
  const client = clientOf(holder);
  expect(summary(await client.lease('KEY'))).toBe('undetermined: agent_unavailable');
  await using page = await startHolderWith(() => ({ body: '<p>Welcome</p>' }));
  expect(summary(await clientOf(page).lease('KEY'))).toBe('undetermined: agent_unavailable');
  expect(summary(await connect({ url: 'http://127.0.0.1:1', leases: trust }).lease('KEY'))).toBe(
    'undetermined: agent_unavailable',
  );
});

it('with the option fresh, the issuer is asked to sign the nonce', async () => {
  const { typed, answer } = vector('a lease into which the issuer has signed the nonce, without a proof');
  await using holder = await startHolderWith((_, nonce) => ({ body: { data: answer(nonce) } }));
  const client = clientOf(holder);
  expect(await client.lease(typed, { fresh: true })).toMatchObject({ nonceSignedBy: 'issuer' });
  await client.lease(typed);
  expect(holder.asked.map(({ prefer }) => prefer)).toEqual(['wait=5', undefined]);
});

it('a program may say at which time the lease must be valid', async () => {
  await using holder = await startFakeHolder(made);
  const { typed } = vector('a lease and its proof');
  const later = Date.parse('2100-01-01T00:00:00Z');
  expect(await clientOf(holder).lease(typed, { now: later })).toMatchObject({
    verdict: 'undetermined',
    reason: 'expired',
    error: { code: 'expired', isTemporary: true },
  });
});

it.each([
  ['license_not_found', 404, 'refused: not_found'],
  ['parameters_invalid', 422, 'refused: not_found'],
  ['lease_not_found', 404, 'refused: not_activated'],
  ['no_seat_left', 409, 'refused: no_seat_left'],
  ['no_move_left', 409, 'refused: no_move_left'],
  ['license_expired', 409, 'refused: expired'],
  ['activation_blocked', 409, 'refused: blocked'],
  ['verdict_expired', 503, 'undetermined: expired'],
  ['upstream_unreachable', 503, 'undetermined: unknown'],
  ['rate_limited', 429, 'undetermined: busy'],
  ['lease_request_invalid', 422, 'undetermined: unknown'],
])(
  'the problem %s (%i) of a holder is the verdict %s, without a signature',
  async (code, status, verdict) => {
    await using holder = await startHolderWith(() => ({ status, body: problem(code, status) }));
    const said = await clientOf(holder).lease('KEY');
    expect(summary(said)).toBe(verdict);
    expect(said).toMatchObject({ error: { code }, ...(said.verdict === 'refused' && { isSigned: false }) });
  },
);

it('an agent that is no holder, and a program without root keys, are mistakes that reject', async () => {
  await using holder = await startHolderWith(() => ({ status: 409, body: problem('not_a_holder', 409) }));
  await expect(clientOf(holder).lease('KEY')).rejects.toMatchObject({ code: 'not_a_holder' });
  await expect(connect({ url: holder.url }).lease('KEY')).rejects.toThrow(ConfigurationError);
  expect(() => connect({ leases: { ...trust, roots: [] } })).toThrow(ConfigurationError);
});

it('the other calls of a program that trusts leases need no secret either', async () => {
  await using holder = await startFakeHolder(made);
  const client = clientOf(holder);
  expect((await client.use('KEY')).license.uses).toBe(1);
  expect(holder.counted).toEqual(['license_key=KEY&product_key=RGsF']);
  await expect(connect({ url: holder.url }).use('KEY')).rejects.toThrow(ConfigurationError);
});

it('a wrong option of the program is an error of the program, and nothing is asked', async () => {
  await using holder = await startFakeHolder(made);
  const client = clientOf(holder);
  const { typed } = vector('a lease that has expired');
  const wrongOptions = [{ now: Number.NaN }, { now: '2026-03-01' }, { now: null }, { fresh: 'no' }];
  for (const options of wrongOptions) {
    await expect(client.lease(typed, options as object)).rejects.toThrow(ConfigurationError);
  }
  expect(holder.asked).toEqual([]);
});
