import { expect, test } from 'vitest';
import type { SignedAnswer } from '../../../src/features/leases/service/ports.ts';
import { FakeIssuer, HeldDevice } from './support/holder-harness.ts';
import { day, hour, key, minute, refusalOf, valueOf } from '../../support/harness/service-harness.ts';
import { VirtualTime } from '../../support/harness/virtual-clock.ts';

const asked = { licenseKey: key, productKey: null, act: 'end', replaces: null, isRefused: false } as const;

/** What the issuer has signed for another device of the same license. */
async function noticeOf(
  issuer: FakeIssuer,
  other: HeldDevice,
  state: 'ended' | 'blocked',
): Promise<SignedAnswer> {
  valueOf(await other.activate());
  if (state === 'blocked') await issuer.blockActivation(other);
  const answer = await issuer.answerFile(valueOf(await other.holder.requestFile(asked)));
  if (!('notice' in answer)) throw new Error('it is no notice');
  return answer;
}

test.each(['ended', 'blocked'] as const)(
  'a notice that another device of the license is %s ends no lease of this device',
  async (state) => {
    await using issuer = await FakeIssuer.start(new VirtualTime());
    await using device = await HeldDevice.start(issuer);
    await using other = await HeldDevice.start(issuer);
    await device.verify();
    await issuer.time.advance(hour);
    const notice = await noticeOf(issuer, other, state);
    const before = device.held;
    expect(refusalOf(await device.holder.install(notice))).toBe('lease_invalid');
    issuer.tamper = () => notice;
    await device.renew();
    expect(device.held).toMatchObject({ document: before.document, rev: before.rev });
    issuer.tamper = (answer) => answer;
    await device.renew();
    expect(await device.verify()).toBe('enabled 0 fresh');
  },
);

test('an answer to another request of this device is not taken over from the network', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime());
  await using device = await HeldDevice.start(issuer);
  await issuer.authority.sell('KEY-2');
  await device.verify();
  let swapped: SignedAnswer | null = null;
  issuer.tamper = (answer) => (swapped = answer);
  await device.verify('KEY-2');
  await issuer.authority.setEnabled(false);
  issuer.tamper = (answer) => swapped ?? answer;
  const before = device.held;
  await device.renew();
  expect(device.held).toMatchObject({ document: before.document, rev: before.rev });
  expect(device.held.request).not.toBeNull();
  issuer.tamper = (answer) => answer;
  await device.renew();
  expect(await device.verify()).toBe('disabled 0 fresh');
});

const billion = { recorded: 1_000_000_000, returned: 0 };

/** The request `out_of_sequence` as anybody can write it. */
const unsigned = { code: 'out_of_sequence', detail: 'x', last: 1, challenge: 'x', uses: billion };

test('an unsigned out_of_sequence changes no totals, and is not asked about again at once', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: day });
  await using device = await HeldDevice.start(issuer);
  await device.verify();
  await device.crash();
  await device.run({ loop: true });
  const send = issuer.send.bind(issuer);
  issuer.send = async (document, options) => {
    await send(document, options);
    return { kind: 'answered', status: 409, body: unsigned, retryAfterS: null };
  };
  await device.change('usage');
  issuer.attempts = 0;
  const end = device.clock.now() + minute;
  await device.until(() => device.clock.now() > end, 100);
  expect(issuer.attempts).toBeLessThan(15);
  expect(device.held.uses).toEqual({ recorded: 1, returned: 0 });
  issuer.send = send;
  await device.until(() => device.held.confirmedUses.recorded === 1, 1_000);
  expect(issuer.authority.license.uses).toBe(1);
});

test('a signed out_of_sequence about another request changes nothing', async () => {
  await using issuer = await FakeIssuer.start(new VirtualTime());
  await using device = await HeldDevice.start(issuer);
  await using other = await HeldDevice.start(issuer);
  await device.verify();
  await other.verify();
  const known = { last: 1, challenge: 'x', uses: billion, isRestored: true };
  const request = { request: {} as never, device: other.device.kid, digest: 'ab'.repeat(32) };
  const body = { code: 'out_of_sequence', detail: 'x', ...(await issuer.sequence(known, request)) };
  const send = issuer.send.bind(issuer);
  issuer.send = () => Promise.resolve({ kind: 'answered', status: 409, body, retryAfterS: null });
  await device.renew();
  expect(device.held.uses).toEqual({ recorded: 0, returned: 0 });
  issuer.send = send;
  await device.renew();
  expect(await device.verify()).toBe('enabled 0 fresh');
});
