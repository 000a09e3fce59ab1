import { describe, expect, test } from 'vitest';
import type { License } from '../../../../src/domain/license.ts';
import { asAnswered } from '../../../../src/domain/terms.ts';
import { endOf } from '../../../../src/features/leases/domain/lease-rules.ts';
import { day, hour, minute } from '../../../support/harness/service-harness.ts';
import { give, openDevice, said } from '../support/device-of-license.ts';

/*
 * The whole table of a license that ends, at a holder with its issuer: when it ends, whether its seller disables it after the
 * device has a lease, the network of the device, and its clock.
 */

const ends = {
  past: { afterMs: -hour, graceMs: 0 },
  near: { afterMs: hour, graceMs: 0 },
  'near, with a grace': { afterMs: hour, graceMs: hour },
  none: null,
};
/** `silent`: nothing arrives before the end. */
const networks = ['online', 'offline', 'silent'] as const;
/** By how much the wall clock of the device is changed after it has its lease. */
const clocks = { right: 0, back: -2 * day, ahead: 2 * day, suspect: 60 * day };

type Cell = {
  end: keyof typeof ends;
  isDisabled: boolean;
  network: (typeof networks)[number];
  clock: keyof typeof clocks;
};

const cells = Object.keys(ends).flatMap((end) =>
  [false, true].flatMap((isDisabled) =>
    networks.flatMap((network) =>
      Object.keys(clocks).map((clock) => ({ end, isDisabled, network, clock }) as Cell),
    ),
  ),
);

/** Whether a program is let in, and the status; or the code of the problem. */
function inWords(found: Awaited<ReturnType<typeof said>>): string {
  return typeof found === 'string' ? found : wordsOf(found);
}

function wordsOf({ enabled, status }: { enabled: boolean; status?: string | null }): string {
  return `${enabled ? 'in' : 'out'}, ${status ?? 'no status'}`;
}

/** What the holder may say of a license that the issuer has confirmed just now. */
function allowedOnline(clock: Cell['clock'], license: License, now: number): string[] {
  // The notice of a disabled license says nothing of its terms.
  if (!license.enabled) return ['out, disabled', 'out, no status'];
  const answered = asAnswered(license, now);
  const words = wordsOf(answered);
  // A lease ends at the beginning of the last instant.
  if (now === endOf(license)) return [words, 'out, expired'];
  // A clock that runs ahead never goes back. Such a holder knows nothing, and refuses nobody.
  return clock === 'ahead' && answered.enabled ? [words, 'verdict_expired'] : [words];
}

/** What it may say without its issuer. `known`: the license when the device got its lease. */
function allowedOffline(clock: Cell['clock'], known: License, now: number): string[] {
  if (now >= endOf(known)) return ['out, expired'];
  const words = wordsOf(asAnswered(known, now));
  // The lease of a clock that is right, or was set back, is as long as it was.
  if (clock === 'right' || clock === 'back') return [words];
  return [words, 'in, grace', 'out, expired', 'verdict_expired'];
}

/** Plays a cell; returns what the holder must not have said. */
async function play(cell: Cell): Promise<string[]> {
  const { end, isDisabled, network, clock } = cell;
  const terms = ends[end];
  await using shop = await openDevice((now) => {
    if (terms === null) return {};
    const expiresAt = now + terms.afterMs;
    return { expiresAt, graceUntil: terms.graceMs > 0 ? expiresAt + terms.graceMs : null };
  });
  const { device, issuer, start } = shop;
  const { authority } = issuer;
  const known = authority.license;
  await said(device);
  await issuer.time.advance(minute);
  issuer.network = network === 'online' ? 'up' : 'away';
  if (isDisabled) await authority.setEnabled(false);
  device.clock.jumpWall(clocks[clock]);
  const wrong: string[] = [];
  const nowAt = (): number => start + issuer.time.monotonic;
  const check = async (instant: string): Promise<void> => {
    const isOnline = issuer.network === 'up';
    if (isOnline) await device.renew();
    const found = inWords(await said(device));
    const may = isOnline
      ? allowedOnline(clock, authority.license, nowAt())
      : allowedOffline(clock, known, nowAt());
    if (!may.includes(found)) wrong.push(`${instant}: ${found}, not ${may.join(' or ')}`);
  };
  const last = terms === null ? hour : terms.afterMs + terms.graceMs;
  const around = [terms?.afterMs ?? hour, last].flatMap((ms) => [ms - 1, ms, ms + 1]);
  for (const instant of new Set([2 * minute, ...around.filter((ms) => ms > 0)])) {
    await issuer.time.advance(start + instant - nowAt());
    if (network === 'silent' && instant > last) issuer.network = 'up';
    await check(`${instant} ms`);
  }
  await device.crash();
  device.clock = device.clock.restarted(device.clock.mark());
  await device.run();
  await check('after a restart');
  // Without a network, the device does not get to know it.
  give(issuer, { expiresAt: nowAt() - (nowAt() % 1000) + 90 * day });
  await check('after a renewal');
  return wrong;
}

describe.each(Object.keys(ends))('with the end %s', (end) => {
  test.each(Object.keys(clocks))(
    'a holder whose clock is %s lets nobody in beyond end and grace, and refuses nobody whose license is valid',
    async (clock) => {
      const wrong: string[] = [];
      for (const cell of cells.filter((each) => each.end === end && each.clock === clock))
        wrong.push(...(await play(cell)).map((found) => `${JSON.stringify(cell)}: ${found}`));
      expect(wrong).toEqual([]);
    },
  );
});
