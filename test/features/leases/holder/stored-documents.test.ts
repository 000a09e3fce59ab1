import { describe, expect, it } from 'vitest';
import type { HeldDocument, HeldLease } from '../../../../src/features/leases/domain/lease.ts';
import { keyPair } from '../support/lease-builders.ts';
import { FakeIssuer, HeldDevice } from '../support/holder-harness.ts';
import { day, hour, key, minute, valueOf } from '../../../support/harness/service-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

const open = async () => {
  const issuer = await FakeIssuer.start(new VirtualTime(), { termMs: 30 * day, refreshMs: hour });
  const device = await HeldDevice.start(issuer);
  expect(await device.verify()).toBe('enabled 0 fresh');
  return {
    issuer,
    device,
    [Symbol.asyncDispose]: async () => {
      await device[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
};

/** Changes the store while no process runs, and starts the holder again. */
async function restart(device: HeldDevice, change: (held: HeldLease) => HeldLease): Promise<void> {
  await device.crash();
  device.store.heldLeases.put(change(device.held));
  await device.run();
}

function withDocument(changes: object): (held: HeldLease) => HeldLease {
  return (held) => ({ ...held, document: { ...held.document, ...changes } as HeldDocument });
}

/** The document with another payload, under the signature of before. */
function forge(text: string, changes: object): string {
  const [header, payload = '', signature] = text.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
  const forged = Buffer.from(JSON.stringify({ ...claims, ...changes })).toString('base64url');
  return [header, forged, signature].join('.');
}

const forgeLease = (held: HeldLease): HeldLease =>
  withDocument({ text: forge(held.document?.text ?? '', { exp: 4_000_000_000 }) })(held);

/** The state in `lease list`, and its problem. */
const listed = ({ holder }: HeldDevice) => {
  const [status] = holder.list();
  return { kind: status?.held.document?.kind, until: status?.lease?.expiresAt, problem: status?.lastError };
};

describe('a lease that was changed in the store', () => {
  it.each([
    ['its text has other claims', forgeLease],
    ['its text is none', withDocument({ text: 'x' })],
    ['another activation has it', (held: HeldLease) => ({ ...held, activationId: 'another' })],
  ])('is not proven if %s: a verify asks the issuer, and fails without it', async (_, change) => {
    await using shop = await open();
    const { device, issuer } = shop;
    issuer.network = 'away';
    await restart(device, change);
    expect(listed(device)).toEqual({
      kind: 'unproven',
      until: undefined,
      problem: expect.stringMatching(/^The stored lease is not proven: /) as string,
    });
    expect(await device.verify()).toBe('verdict_expired');
    expect(await device.change('usage')).toBe('verdict_expired');
    issuer.network = 'up';
    expect(await device.verify()).toBe('enabled 0 fresh');
    expect(listed(device)).toMatchObject({ kind: 'lease', problem: null });
  });

  it('is replaced by the loop without a person, also if its text is not even a document', async () => {
    await using shop = await open();
    const { device } = shop;
    await device.crash();
    device.store.heldLeases.put(withDocument({ text: '' })(device.held));
    await device.run({ loop: true });
    await device.until(() => device.held.document?.text !== '');
    expect(await device.verify()).toBe('enabled 0 fresh');
  });

  it.each([
    ['expiresAt', { expiresAt: 4e12 }],
    ['refreshAt', { refreshAt: 4e12, expiresAt: 4e12 }],
    ['a notice that claims to be a lease', { kind: 'lease', refreshAt: 4e12, expiresAt: 4e12 }],
  ])('counts with what is signed if only its stored values differ: %s', async (name, changes) => {
    await using shop = await open();
    const { device, issuer } = shop;
    if (name.startsWith('a notice')) {
      await issuer.authority.setEnabled(false);
      await issuer.time.advance(2 * hour);
      await device.renew();
    }
    const before = { held: device.held, verdict: await device.verify() };
    issuer.network = 'away';
    await restart(device, withDocument(changes));
    expect(device.held).toEqual(before.held);
    expect(await device.verify()).toBe(before.verdict);
  });

  it('takes no newer number than the signed one, which would keep later leases away', async () => {
    await using shop = await open();
    const { device } = shop;
    const { rev } = device.held;
    await restart(device, (held) => ({ ...held, rev: 10 ** 9 }));
    expect(device.held.rev).toBe(rev);
  });

  it('loses no use that was not reported', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    issuer.network = 'away';
    await device.change('usage');
    await device.change('usage');
    await restart(device, forgeLease);
    issuer.network = 'up';
    expect(await device.verify()).toBe('enabled 2 fresh');
    expect(issuer.authority.license.uses).toBe(2);
  });
});

describe('a key statement that was changed in the store', () => {
  const setting = 'lease_statement';

  it.each([
    [
      'has another payload',
      ({ text, version }: Statement) => ({ version, text: forge(text, { version: 9 }) }),
    ],
    ['is gone', () => null],
  ])('proves no lease if it %s, until the issuer has sent it again', async (_, change) => {
    await using shop = await open();
    const { device, issuer } = shop;
    issuer.network = 'away';
    await device.crash();
    const changed = change(JSON.parse(device.store.settings.get(setting) ?? '') as Statement);
    device.store.settings.set(setting, changed === null ? '' : JSON.stringify(changed));
    await device.run({ loop: true });
    expect(listed(device).problem).toMatch(/^The stored lease is not proven: /);
    expect(await device.verify()).toBe('verdict_expired');
    issuer.network = 'up';
    await device.until(() => listed(device).problem === null, minute);
    expect(await device.verify()).toMatch(/^enabled/);
  });

  it('keeps no later statement away by a high version', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.crash();
    const stored = JSON.parse(device.store.settings.get(setting) ?? '') as Statement;
    device.store.settings.set(setting, JSON.stringify({ ...stored, version: 10 ** 9 }));
    await device.run();
    await issuer.time.advance(2 * hour);
    await device.renew();
    expect(await device.verify()).toBe('enabled 0 fresh');
  });

  it('root keys that were exchanged by mistake cost no lease: the right ones prove it again', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    const { document, rev } = device.held;
    const { root } = issuer;
    issuer.network = 'away';
    await device.crash();
    issuer.root = await keyPair();
    await device.run();
    expect(await device.verify()).toBe('verdict_expired');
    await device.crash();
    issuer.root = root;
    await device.run();
    expect(device.held).toMatchObject({ document, rev });
    expect(await device.verify()).toBe('enabled 0 fresh');
  });
});

type Statement = { version: number; text: string };

it.each(['a lease', 'a lease with uses', 'a notice', 'a notice after uses', 'an ended seat'])(
  'a restart changes nothing about %s that nobody has changed',
  async (what) => {
    await using shop = await open();
    const { device, issuer } = shop;
    if (what.endsWith('uses')) {
      await device.change('usage');
      await device.renew();
      await device.change('usage');
    }
    if (what.startsWith('a notice')) await issuer.authority.setEnabled(false);
    if (what === 'an ended seat') valueOf(await device.holder.deactivate(key, device.signal));
    await issuer.time.advance(2 * hour);
    await device.renew();
    const before = device.held;
    await restart(device, (held) => held);
    expect(device.held).toEqual(before);
  },
);
