import { defaultProductTerms } from '../../../../src/domain/catalogue.ts';
import { productKey } from './authority.ts';
import { Device } from './device.ts';
import { faultOfAnswer, knownBefore } from './end-invariants.ts';
import type { LatchkeyWorld } from './world.ts';

/* The ends of licenses, as the seller changes them, and devices with leases. */

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export async function changeEnd(world: LatchkeyWorld, key: string): Promise<void> {
  const { authority, random, clock } = world;
  const tenant = { accountId: 'default', productKey };
  const inMs = random.pick([-minuteMs, minuteMs, 5 * minuteMs, hourMs, null]);
  const change = { expiresAt: inMs === null ? null : Math.floor((clock.now() + inMs) / 1_000) * 1_000 };
  const isRenewed = random.chance(0.3);
  const changed = isRenewed
    ? await authority.write('renewLicense', { tenant, licenseKey: key, span: '1d' })
    : await authority.write('updateLicense', { tenant, licenseKey: key, change });
  // A license without an end needs no renewal.
  if (changed.ok) noteEnd(world, key);
}

/** The grace of the product, for all its licenses. */
export async function changeGrace(world: LatchkeyWorld, expiryGraceMs: number): Promise<void> {
  const product = { productKey, name: 'Press', recurring: false, archived: false };
  const licenseTerms = { ...defaultProductTerms, expiryGraceMs };
  await world.authority.write('updateProduct', { ...product, licenseTerms });
  for (const key of world.keys.keys()) noteEnd(world, key);
}

function noteEnd({ authority, ends, time }: LatchkeyWorld, key: string): void {
  const { expiresAt = null, graceUntil = null } = authority.license(key);
  ends.set(key, [...(ends.get(key) ?? []), { from: time.monotonic, expiresAt, graceUntil }]);
}

/** Each license has a device at the authority and at each agent. */
export function placeDevices(world: LatchkeyWorld): void {
  for (const issuer of [null, ...world.sites]) {
    for (const licenseKey of world.keys.keys()) {
      const name = `a device of ${issuer?.place ?? 'the authority'} for ${licenseKey}`;
      world.devices.push(new Device(world, { name, issuer, licenseKey }));
    }
  }
}

/** A device asks its issuer, or does not reach it for a while. */
export function troubleDevice(world: LatchkeyWorld): void {
  const { random, devices } = world;
  const device = random.pick(devices as [Device, ...Device[]]);
  if (random.chance(0.2)) device.isAway = !device.isAway;
  else void ask(world, device, random.chance(0.5));
}

async function ask(world: LatchkeyWorld, device: Device, isEarly: boolean): Promise<void> {
  const before = knownBefore(world, device);
  const answer = await device.ask({ isEarly });
  const fault = answer === null ? null : faultOfAnswer(world, device, { before, answer });
  if (fault !== null) world.broken.push(fault);
}

export function healDevices({ devices }: LatchkeyWorld): void {
  for (const device of devices) device.isAway = false;
}

/** What has changed has been answered to requests that wait at issuers. */
export async function askFromDevices(world: LatchkeyWorld): Promise<void> {
  // The first request of a device may be out of sequence, or the answer to an earlier one.
  for (let round = 0; round < 4; round += 1) {
    for (const device of world.devices) void ask(world, device, true);
    await world.pass(2 * minuteMs);
  }
}
