import { describe, expect, it } from 'vitest';
import { LeaseError, verifyLease } from '../../../../src/client/index.ts';
import { keyPair, leaseIssuer } from '../support/lease-builders.ts';
import { FakeIssuer, HeldDevice } from '../support/holder-harness.ts';
import {
  day,
  hour,
  key,
  minute,
  productKey,
  refusalOf,
  valueOf,
} from '../../../support/harness/service-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';

const open = async (
  terms: Parameters<typeof FakeIssuer.start>[1] = {},
  settings: Parameters<typeof HeldDevice.start>[1] = {},
) => {
  const issuer = await FakeIssuer.start(new VirtualTime(), terms);
  const device = await HeldDevice.start(issuer, settings);
  return {
    issuer,
    device,
    [Symbol.asyncDispose]: async () => {
      await device[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
};

describe('a verify at a holder', () => {
  it('takes a seat at first, and is answered from the lease afterwards', async () => {
    await using shop = await open({ seats: 1 });
    const { device, issuer } = shop;
    expect(await device.verify()).toBe('enabled 0 fresh');
    expect(await device.verify()).toBe('enabled 0 fresh');
    expect(issuer.received).toHaveLength(1);
    expect(device.held).toMatchObject({ seq: 1, request: null, document: { kind: 'lease' } });
  });

  it('takes no seat if only a person activates', async () => {
    await using shop = await open({}, { activate: 'explicit' });
    const { device, issuer } = shop;
    expect(await device.verify()).toBe('lease_not_found');
    expect(issuer.received).toEqual([]);
    valueOf(await device.activate());
    expect(await device.verify()).toBe('enabled 0 fresh');
  });

  it('is fresh until the lease is to be renewed, then grace until it expires, and then renews it or fails', async () => {
    await using shop = await open({ termMs: 30 * day, refreshMs: day });
    const { device, issuer } = shop;
    await device.verify();
    issuer.network = 'away';
    await issuer.time.advance(day - 1_000);
    expect(await device.verify()).toBe('enabled 0 fresh');
    await issuer.time.advance(2_000);
    expect(await device.verify()).toBe('enabled 0 grace');
    await issuer.time.advance(29 * day);
    expect(await device.verify()).toBe('verdict_expired');
    issuer.network = 'up';
    expect(await device.verify()).toBe('enabled 0 fresh');
  });

  it('a key that the issuer does not know is forgotten, and not asked for again at once', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    expect(await device.verify('WRONG')).toBe('license_not_found');
    expect(await device.verify('WRONG')).toBe('license_not_found');
    expect(issuer.received).toHaveLength(1);
    expect(device.store.heldLeases.all()).toEqual([]);
    await issuer.time.advance(minute);
    await issuer.authority.sell('WRONG');
    expect(await device.verify('WRONG')).toBe('enabled 0 fresh');
  });

  it('a key that is longer than any that is issued is refused, and not called unknown', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    expect(await device.verify('K'.repeat(1_025))).toBe('parameters_invalid');
    expect(issuer.received).toEqual([]);
    expect(await device.verify('K'.repeat(1_024))).toBe('license_not_found');
    expect(issuer.received).toHaveLength(1);
  });

  it('unknown keys are asked for at a limited rate', async () => {
    await using shop = await open({}, { misses: 2 });
    const said = [];
    for (const each of ['A', 'B', 'C']) said.push(await shop.device.verify(each));
    expect(said).toEqual(['license_not_found', 'license_not_found', 'rate_limited']);
  });

  it('pasted spellings of a key are one license key', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await issuer.authority.sell('ABCDE-FGHJK-LMNPQ-RSTUV');
    expect(await device.verify('ABCDE\u2011FGHJK-LMNPQ-RSTUV')).toBe('enabled 0 fresh');
    expect(await device.verify('abcde-fghjk-lmnpq-rstuv')).toBe('enabled 0 fresh');
    expect(await device.verify('License key: \u201cABCDE FGHJK LMNPQ RSTUV\u201d.')).toBe('enabled 0 fresh');
    expect(issuer.received).toHaveLength(1);
  });

  it('a caller names the product if the holder has several', async () => {
    await using shop = await open({}, { productKeys: ['press', 'brush'] });
    const { device } = shop;
    expect(await device.verify()).toBe('parameters_invalid');
    const activation = { licenseKey: key, productKey: 'press', replaces: null };
    valueOf(await device.holder.activate(activation, device.signal));
    expect(await device.verify()).toBe('enabled 0 fresh');
    const other = await device.holder.activate({ ...activation, productKey: 'brush' }, device.signal);
    expect(refusalOf(other)).toBe('license_not_found');
  });
});

describe('notices', () => {
  it('a program that sends a nonce gets a notice with the proof that it is about this device', async () => {
    await using shop = await open({ refreshMs: hour });
    const { device, issuer } = shop;
    await device.verify();
    await issuer.authority.setEnabled(false);
    await issuer.time.advance(2 * hour);
    await device.renew();
    const nonce = 'AAAAAAAAAAAAAAAAAAAAAA';
    const asked = { licenseKey: key, productKey, nonce, waitMs: 0 };
    const shown = valueOf(await device.holder.show(asked, device.signal));
    const trust = { issuer: leaseIssuer, product: productKey, roots: [issuer.root.jwk] };
    const check = { ...trust, ...shown, licenseKey: key, nonce };
    expect(verifyLease(check)).toMatchObject({ reason: 'disabled', device: device.device.kid });
    expect(() => verifyLease({ ...check, nonce: 'BBBBBBBBBBBBBBBBBBBBBB' })).toThrow(LeaseError);
    expect(() => verifyLease({ ...check, proof: null })).toThrow(LeaseError);
    const unasked = valueOf(await device.holder.show({ ...asked, nonce: null }, device.signal));
    expect(unasked).toMatchObject({ proof: null });
  });

  it('a disabled license is answered as disabled for good, until there is a newer lease', async () => {
    await using shop = await open({ refreshMs: hour });
    const { device, issuer } = shop;
    await device.verify();
    await device.change('usage');
    await issuer.authority.setEnabled(false);
    await issuer.time.advance(2 * hour);
    await device.renew();
    expect(await device.verify()).toBe('disabled 1 fresh');
    await issuer.time.advance(100 * day);
    expect(await device.verify()).toBe('disabled 1 fresh');
    await issuer.authority.setEnabled(true);
    await device.renew();
    expect(await device.verify()).toBe('enabled 1 fresh');
  });

  it('the seat of a disabled license is given back, and another device has it once the license is enabled', async () => {
    await using shop = await open({ seats: 1 });
    const { device, issuer } = shop;
    await using other = await HeldDevice.start(issuer);
    await device.verify();
    await issuer.authority.setEnabled(false);
    await device.renew();
    valueOf(await device.holder.deactivate(key, device.signal));
    await issuer.authority.setEnabled(true);
    expect(await other.verify()).toBe('enabled 0 fresh');
  });

  it('an ended seat is taken again by a verify, and a blocked device gets no seat', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    await issuer.endActivation(device);
    await device.renew();
    expect(device.held.document).toMatchObject({ kind: 'notice', state: 'ended' });
    expect(await device.verify()).toBe('enabled 0 fresh');
    await issuer.blockActivation(device);
    await device.renew();
    expect(await device.verify()).toBe('activation_blocked');
    const asked = issuer.received.length;
    expect(await device.verify()).toBe('activation_blocked');
    expect(issuer.received).toHaveLength(asked);
  });

  it('no seat is left: the refusal names the devices, and the next request has the next number', async () => {
    await using shop = await open({ seats: 1 });
    const { device, issuer } = shop;
    await using other = await HeldDevice.start(issuer);
    await other.verify();
    const refused = await device.activate();
    expect(refused).toMatchObject({
      ok: false,
      problem: { code: 'no_seat_left', holders: [{ deviceName: 'laptop' }] },
    });
    expect(device.held).toMatchObject({ seq: 1, request: null, document: null });
    valueOf(await other.holder.deactivate(key, other.signal));
    valueOf(await device.activate());
    expect(device.held).toMatchObject({ seq: 2, document: { kind: 'lease' } });
    expect(await other.verify()).toBe('lease_not_found');
  });

  it('a person takes over the seat of a lost device', async () => {
    await using shop = await open({ seats: 1, refreshMs: hour });
    const { device, issuer } = shop;
    await using lost = await HeldDevice.start(issuer);
    await lost.verify();
    await issuer.time.advance(2 * hour);
    valueOf(await device.activate(key, lost.held.activationId));
    await lost.renew();
    expect(lost.held.document).toMatchObject({ kind: 'notice', state: 'replaced' });
    expect(await lost.verify()).toBe('no_seat_left');
  });
});

describe('uses', () => {
  it('are counted at once, reported as totals, and taken back', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    expect(await device.change('usage')).toBe('1');
    expect(await device.change('usage')).toBe('2');
    expect(await device.change('decrease')).toBe('1');
    expect(await device.change('enable')).toBe('scope_missing');
    await device.renew();
    expect(issuer.authority.license.uses).toBe(1);
    expect(device.held.confirmedUses).toEqual({ recorded: 2, returned: 1 });
    expect(await device.verify()).toBe('enabled 1 fresh');
    expect(await device.change('decrease')).toBe('0');
    expect(await device.change('decrease')).toBe('0');
    expect(device.held.uses).toEqual({ recorded: 2, returned: 2 });
  });

  it('more uses than one request may add are reported in several', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    const uses = { recorded: 25_000, returned: 0 };
    device.store.heldLeases.put({ ...device.held, uses });
    for (let round = 0; round < 3; round += 1) await device.renew();
    expect(device.held.confirmedUses).toEqual(uses);
    expect(issuer.authority.license.uses).toBe(25_000);
  });
});

describe('order and repetition', () => {
  it('a request whose answer is lost is repeated, also after a crash, and carried out once', async () => {
    await using shop = await open({ seats: 1 });
    const { device, issuer } = shop;
    await device.verify();
    await device.change('usage');
    issuer.network = 'lost';
    await device.renew();
    expect(issuer.authority.license.uses).toBe(1);
    await device.crash();
    issuer.network = 'up';
    await device.run();
    await device.renew();
    expect(issuer.authority.license.uses).toBe(1);
    expect(device.held.confirmedUses.recorded).toBe(1);
    const documents = new Set(issuer.received.map(({ document }) => document));
    expect(documents.size).toBeLessThan(issuer.received.length);
  });

  it('a request whose answer is lost counts its uses once, also if the license is unknown to the issuer for a while', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    await device.change('usage');
    issuer.network = 'lost';
    await device.renew();
    issuer.network = 'up';
    issuer.refuse = 'license_not_found';
    const asked = issuer.received.length;
    await device.renew();
    expect(issuer.received).toHaveLength(asked + 1);
    issuer.refuse = null;
    await device.change('usage');
    await device.renew();
    await device.renew();
    expect(issuer.authority.license.uses).toBe(2);
    expect(device.held.confirmedUses).toEqual(device.held.uses);
  });

  it('a holder that was restored from a backup is in step again by itself, and reports what it had not sent', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    await device.change('usage');
    const backup = device.held;
    for (let round = 0; round < 3; round += 1) {
      await device.change('usage');
      await device.renew();
    }
    device.store.heldLeases.put(backup);
    await device.change('usage');
    await device.renew();
    expect(device.held.confirmedUses).toEqual(device.held.uses);
    expect(await device.verify()).toMatch(/^enabled \d fresh$/);
    expect(issuer.authority.license.uses).toBe(device.held.uses.recorded);
  });

  it('an issuer that forgot the device is in step again by itself', async () => {
    await using shop = await open({ seats: 1 });
    const { device, issuer } = shop;
    await device.verify();
    await device.change('usage');
    await device.renew();
    issuer.forget(device);
    await device.change('usage');
    await device.renew();
    expect(device.held.document?.kind).toBe('lease');
    expect(issuer.authority.license.uses).toBe(2);
  });

  it('a use that is counted while the issuer says `out_of_sequence` is not lost', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    issuer.forget(device);
    const send = issuer.send.bind(issuer);
    issuer.send = async (...request) => {
      const reply = await send(...request);
      if (reply.kind === 'answered' && reply.status === 409) await device.change('usage');
      return reply;
    };
    await device.renew();
    expect(device.held.uses.recorded).toBe(1);
    await device.renew();
    expect(issuer.authority.license.uses).toBe(1);
  });

  it('two copies of a state directory are marked, and neither is cut off', async () => {
    await using shop = await open({ seats: 1 });
    const { device, issuer } = shop;
    await device.verify();
    await using copy = await device.copy();
    for (let round = 0; round < 4; round += 1) {
      for (const each of [device, copy]) {
        await each.change('usage');
        await each.renew();
      }
    }
    expect(await device.verify()).toMatch(/^enabled/);
    expect(await copy.verify()).toMatch(/^enabled/);
    expect(issuer.authority.license.uses).toBe(8);
    expect(issuer.activation(device).copiedAt).not.toBeNull();
  });

  it('a holder with another device key takes a seat of its own, also after an unanswered request', async () => {
    await using shop = await open({ seats: 1, refreshMs: hour });
    const { device, issuer } = shop;
    await device.verify();
    await device.change('usage');
    issuer.network = 'away';
    await issuer.time.advance(2 * hour);
    await device.renew();
    await device.crash();
    issuer.network = 'up';
    const { activationId: replaces } = device.held;
    device.device = await keyPair();
    await device.run();
    expect(await device.verify()).toBe('no_seat_left');
    valueOf(await device.activate(key, replaces));
    expect(await device.verify()).toBe('enabled 1 fresh');
    expect(issuer.activation(device)).toMatchObject({ state: 'active', uses: { recorded: 1 } });
    await device.crash();
    await device.run();
    expect(device.held.document?.kind).toBe('lease');
  });

  it('a hundred restarts take one seat', async () => {
    await using shop = await open({ seats: 1 });
    const { device, issuer } = shop;
    for (let start = 0; start < 100; start += 1) {
      expect(await device.verify()).toBe('enabled 0 fresh');
      await device.crash();
      await device.run();
    }
    expect(issuer.received).toHaveLength(1);
  });
});

describe('answers that cannot be trusted', () => {
  it.each([
    ['a lease that another key has signed', 'lease'],
    ['a key statement that another root has signed', 'keys'],
  ])('%s changes nothing', async (_, member) => {
    await using shop = await open();
    await using stranger = await FakeIssuer.start(new VirtualTime());
    const { device, issuer } = shop;
    await device.verify();
    const before = device.held.document;
    const forged = await stranger.forge(issuer);
    issuer.tamper = (answer) => ({ ...answer, [member]: forged[member as 'lease' | 'keys'] });
    await issuer.time.advance(2 * day);
    await device.renew();
    expect(device.held.document).toEqual(before);
    expect(device.lines).toContainEqual(expect.objectContaining({ level: 'warn' }));
    issuer.tamper = (answer) => answer;
    await device.renew();
    expect(device.held.document).not.toEqual(before);
  });

  it('after an exchange of the root keys, the first key statement of the new ones is trusted, and none of the old ones', async () => {
    await using shop = await open({ refreshMs: hour });
    const { device, issuer } = shop;
    issuer.version = 2;
    await device.verify();
    const old = { root: issuer.root, version: 3 };
    await device.crash();
    Object.assign(issuer, { root: await keyPair(), signing: await keyPair(), version: 1 });
    await device.run();
    expect(await device.verify()).toBe('enabled 0 fresh');
    await issuer.time.advance(2 * hour);
    await device.renew();
    expect(await device.verify()).toBe('enabled 0 fresh');
    Object.assign(issuer, old);
    await issuer.time.advance(2 * hour);
    await device.renew();
    expect(await device.verify()).toBe('enabled 0 grace');
  });

  it('an unsigned refusal never removes a lease', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    issuer.refuse = 'license_not_found';
    await issuer.time.advance(2 * day);
    await device.renew();
    expect(await device.verify()).toBe('enabled 0 grace');
    issuer.refuse = null;
    await device.renew();
    expect(await device.verify()).toBe('enabled 0 fresh');
  });
});

describe('the clock', () => {
  it.each([
    ['two days slow', -2 * day],
    ['two days fast', 2 * day],
  ])('a clock that is %s gets a lease, and follows the issuer', async (_, ahead) => {
    await using issuer = await FakeIssuer.start(new VirtualTime(), { refreshMs: hour });
    await using device = await HeldDevice.start(
      issuer,
      {},
      issuer.time.clock({ wall: issuer.authority.now + ahead }),
    );
    expect(await device.verify()).toBe('enabled 0 fresh');
    expect(Math.abs(device.clock.now() - issuer.authority.now)).toBeLessThan(2_000);
    await issuer.time.advance(30 * day + minute);
    issuer.network = 'away';
    expect(await device.verify()).toBe('verdict_expired');
  });

  it('a clock that is turned back extends nothing', async () => {
    await using shop = await open({ termMs: 10 * day });
    const { device, issuer } = shop;
    await device.verify();
    issuer.network = 'away';
    await issuer.time.advance(9 * day);
    device.clock.jumpWall(-9 * day);
    expect(await device.verify()).toBe('enabled 0 grace');
    await issuer.time.advance(2 * day);
    expect(await device.verify()).toBe('verdict_expired');
  });
});

const fileRequest = {
  licenseKey: key,
  productKey: null,
  act: 'take',
  replaces: null,
  isRefused: false,
} as const;

describe('files', () => {
  it('the same request is written until its answer is installed, and a file for another device is refused', async () => {
    await using shop = await open({}, { activate: 'explicit' });
    const { device, issuer } = shop;
    issuer.network = 'away';
    const request = {
      licenseKey: key,
      productKey: null,
      act: 'take',
      replaces: null,
      isRefused: false,
    } as const;
    const first = valueOf(await device.holder.requestFile(request));
    expect(valueOf(await device.holder.requestFile(request))).toBe(first);
    const answer = await issuer.answerFile(first, issuer.authority.now + 200 * day);
    valueOf(await device.holder.install(answer));
    expect(await device.verify()).toBe('enabled 0 fresh');
    expect(valueOf(await device.holder.requestFile(request))).not.toBe(first);
    await using other = await HeldDevice.start(issuer);
    valueOf(await other.holder.requestFile(request));
    expect(refusalOf(await other.holder.install(answer))).toBe('lease_invalid');
    expect(other.held.document).toBeNull();
    await issuer.time.advance(199 * day);
    expect(await device.verify()).toBe('enabled 0 grace');
  });

  it('another request replaces the one that the vendor never saw, and a refused one is passed', async () => {
    await using shop = await open({ seats: 1, refreshMs: hour }, { activate: 'explicit' });
    const { device, issuer } = shop;
    await using other = await HeldDevice.start(issuer);
    await other.activate();
    await issuer.time.advance(2 * hour);
    const request = {
      licenseKey: key,
      productKey: null,
      act: 'take',
      replaces: null,
      isRefused: false,
    } as const;
    const unseen = valueOf(await device.holder.requestFile(request));
    await expect(issuer.answerFile(unseen)).rejects.toThrow('no_seat_left');
    const replaces = other.held.activationId;
    const stuck = valueOf(await device.holder.requestFile({ ...request, replaces }));
    expect(await issuer.answerFile(stuck)).toHaveProperty('sequence');
    const next = valueOf(await device.holder.requestFile({ ...request, replaces, isRefused: true }));
    valueOf(await device.holder.install(await issuer.answerFile(next)));
    expect(await device.verify()).toBe('enabled 0 fresh');
  });

  it('a request with uses is not replaced by another one, because the issuer may have counted them', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    issuer.network = 'lost';
    await device.change('usage');
    await device.renew();
    await device.change('usage');
    expect(refusalOf(await device.holder.requestFile({ ...fileRequest, act: 'end' }))).toBe(
      'lease_request_unanswered',
    );
    expect(refusalOf(await device.holder.requestFile({ ...fileRequest, replaces: 'another' }))).toBe(
      'lease_request_unanswered',
    );
    expect(await device.verify()).toBe('enabled 2 fresh');
    const repeated = valueOf(await device.holder.requestFile(fileRequest));
    expect(repeated).toBe(issuer.received.at(-1)?.document);
    valueOf(await device.holder.install(await issuer.answerFile(repeated)));
    const end = valueOf(await device.holder.requestFile({ ...fileRequest, act: 'end' }));
    expect(valueOf(await device.holder.requestFile({ ...fileRequest, act: 'end' }))).toBe(end);
    expect(refusalOf(await device.holder.requestFile(fileRequest))).toBe('lease_request_unanswered');
    expect(valueOf(await device.holder.requestFile({ ...fileRequest, act: 'end' }))).toBe(end);
    valueOf(await device.holder.install(await issuer.answerFile(end)));
    expect(device.held).toMatchObject({ wanted: 'ended', document: { state: 'ended' } });
    expect(issuer.authority.license.uses).toBe(2);
  });

  it('a request with uses about a disabled license is written again, and its seat can be given back', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    await issuer.authority.setEnabled(false);
    await device.renew();
    issuer.network = 'lost';
    await device.change('usage');
    await device.renew();
    const repeated = valueOf(await device.holder.requestFile(fileRequest));
    expect(repeated).toBe(issuer.received.at(-1)?.document);
    valueOf(await device.holder.install(await issuer.answerFile(repeated)));
    const end = valueOf(await device.holder.requestFile({ ...fileRequest, act: 'end' }));
    valueOf(await device.holder.install(await issuer.answerFile(end)));
    expect(device.held.document).toMatchObject({ state: 'ended' });
    expect(issuer.authority.license.uses).toBe(1);
  });

  it('a request with uses that the vendor has refused is passed, so that the seat can be given back', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    await device.verify();
    issuer.network = 'lost';
    await device.change('usage');
    await device.renew();
    const end = valueOf(await device.holder.requestFile({ ...fileRequest, act: 'end', isRefused: true }));
    valueOf(await device.holder.install(await issuer.answerFile(end)));
    expect(device.held.document).toMatchObject({ state: 'ended' });
    expect(issuer.authority.license.uses).toBe(1);
  });

  it('an earlier answer is not installed after a later one', async () => {
    await using shop = await open();
    const { device, issuer } = shop;
    const request = {
      licenseKey: key,
      productKey: null,
      act: 'take',
      replaces: null,
      isRefused: false,
    } as const;
    const first = await issuer.answerFile(valueOf(await device.holder.requestFile(request)));
    valueOf(await device.holder.install(first));
    await issuer.time.advance(hour);
    const second = await issuer.answerFile(valueOf(await device.holder.requestFile(request)));
    valueOf(await device.holder.install(second));
    expect(refusalOf(await device.holder.install(first))).toBe('lease_invalid');
  });
});
