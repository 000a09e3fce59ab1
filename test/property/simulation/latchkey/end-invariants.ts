import { answeredLicense } from '../../../../src/domain/agent/license-snapshot.ts';
import { asAnswered } from '../../../../src/domain/terms.ts';
import type { LeaseAnswer } from '../../../../src/features/leases/domain/lease.ts';
import { freshness } from '../machine.ts';
import type { Device } from './device.ts';
import type { Site } from './site.ts';
import type { GivenEnd, LatchkeyWorld } from './world.ts';

/*
 * Nobody who paid is refused while the upstream's word is younger than the end of the license, and nobody is let in beyond the
 * end and the graces.
 */

/** How long before its arrival an answer may have been made, and how exact its date is, in ms. */
const answerMs = 60_000;
const dateMs = 2_000;
const secondMs = 1_000;

/** From when until when the word of the authority was made on which an answer depends, in ms of virtual time. */
type Made = { from: number; until: number };

/** The ends that a license had meanwhile. */
function endsOf({ ends }: LatchkeyWorld, key: string, { from, until }: Made): GivenEnd[] {
  const given = [{ from: -Infinity, expiresAt: null, graceUntil: null }, ...(ends.get(key) ?? [])];
  return given.filter((end, index) => end.from <= until && (given[index + 1]?.from ?? Infinity) >= from);
}

function latestOf({ expiresAt, graceUntil }: GivenEnd): number {
  return graceUntil ?? expiresAt ?? Infinity;
}

/** When the upstream confirmed what an agent knows. The time of an agent may be behind, after its clock was set back. */
function confirmed({ clock, time }: LatchkeyWorld, site: Site, key: string): Made {
  const { confirmedAt = -Infinity } = site.machine.transaction.snapshots.get(key) ?? {};
  const now = site.clock.now();
  const at = confirmedAt - now + time.monotonic;
  return { from: at - (clock.now() - now) - answerMs, until: at + dateMs };
}

/** What agents answer is right for an end that the license had when it was confirmed. */
export function checkEnds(world: LatchkeyWorld): void {
  for (const site of world.sites) for (const key of world.keys.keys()) checkAgent(world, site, key);
}

function checkAgent(world: LatchkeyWorld, site: Site, key: string): void {
  const snapshot = site.machine.transaction.snapshots.get(key);
  if (snapshot === null || snapshot.gone || !snapshot.local.enabled) return;
  const now = site.clock.now();
  const isValid = answeredLicense(snapshot, freshness, now).enabled;
  const { until, ...made } = confirmed(world, site, key);
  // An agent in the middle tells a change of one key before all other keys are confirmed again.
  const told = endsOf(world, key, { from: until, until: Infinity }).filter(
    ({ expiresAt }) => expiresAt === (snapshot.license.expiresAt ?? null),
  );
  const possible = [...endsOf(world, key, { ...made, until }), ...told];
  // The agent has a grace of its own while it does not know whether the license was renewed.
  const isRight = possible.some((end) =>
    isValid ? now <= latestOf(end) + freshness.expiryGraceMs : now > latestOf(end),
  );
  if (isRight) return;
  const shown = `is answered as ${isValid ? 'valid' : 'ended'} at ${now}`;
  throw new Error(`end: ${site.place}: ${key} ${shown}; it ends at ${possible.map(latestOf).join(', ')}`);
}

/** What the issuer of a device knows before a request. */
export function knownBefore(world: LatchkeyWorld, { issuer, holder }: Device): Made {
  const { monotonic } = world.time;
  return issuer === null
    ? { from: monotonic, until: monotonic }
    : confirmed(world, issuer, holder.held.licenseKey);
}

/** A lease ends with its license, and a notice that a license has ended is true. Returns what is wrong; null: nothing. */
export function faultOfAnswer(
  world: LatchkeyWorld,
  { name, issuer, holder }: Device,
  { before, answer }: { before: Made; answer: LeaseAnswer },
): string | null {
  const possible = endsOf(world, holder.held.licenseKey, { ...before, until: world.time.monotonic });
  const list = possible.map(latestOf).join(', ');
  if (answer.kind === 'lease') {
    const { expiresAt, license } = answer.lease;
    const graceMs = issuer === null ? 0 : freshness.expiryGraceMs;
    const isRight = possible.some(
      (end) => end.expiresAt === (license.expiresAt ?? null) && expiresAt <= latestOf(end) + graceMs,
    );
    return isRight ? null : `lease: ${name} has a lease until ${expiresAt}; its license ends at ${list}`;
  }
  if (answer.kind !== 'notice' || answer.notice.expiredAt === undefined) return null;
  const { expiredAt, issuedAt } = answer.notice;
  const isRight = possible.some((end) => end.expiresAt === expiredAt && issuedAt + secondMs > latestOf(end));
  return isRight ? null : `lease: ${name} was refused at ${issuedAt}; its license ends at ${list}`;
}

/** At rest a device says what its issuer says. */
export function checkEndsAtRest(world: LatchkeyWorld): void {
  const { authority, devices, clock } = world;
  for (const device of devices) {
    const { name, issuer } = device;
    const key = device.holder.held.licenseKey;
    const now = clock.now();
    const snapshot = issuer?.machine.transaction.snapshots.get(key) ?? null;
    const isIn =
      snapshot === null
        ? issuer === null && asAnswered(authority.license(key), now).enabled
        : answeredLicense(snapshot, freshness, now).enabled;
    const found = device.held();
    const isAnswered = found.verdict === 'answer' && found.license.enabled;
    if (isAnswered !== isIn)
      throw new Error(`at rest: ${name} says ${JSON.stringify(found)}; its issuer says ${isIn}`);
  }
}
