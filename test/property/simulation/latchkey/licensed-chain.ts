import { expect } from 'vitest';
import type { License } from '../../../../src/domain/license.ts';
import type { LicenseResponse } from '../../../../src/service/services.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import { defaultProductTerms } from '../../../../src/domain/catalogue.ts';
import { productKey } from './authority.ts';
import { Device } from './device.ts';
import type { Site } from './site.ts';
import { LatchkeyWorld } from './world.ts';
import { valueOf } from '../../../support/harness/service-harness.ts';
import { freshness } from '../machine.ts';

/*
 * What an authority, an agent, an agent below it and devices with leases of each of them answer about a license that ends, on
 * virtual time: the whole table of its end, its state, the connection of agents and devices, and their clocks.
 */

export const minute = 60_000;
const day = 1_440 * minute;
export const key = 'KEY-0';
const check: typeof expect = expect;
const never = new AbortController().signal;

/** By how much the wall clocks of agents and devices are changed after they have learned the license. */
export const clocks = { right: 0, back: -10 * day, ahead: 2 * day, suspect: 40 * day };
/** When the license ends, seen from the moment when the agents learn it; null: never. */
const ends = { past: -minute, near: minute, none: null };
/** The grace of the product of such a license. */
const graces = { past: 0, near: 3 * minute, none: 0 };
/** Of the agents to their upstream, and of every second device to its issuer. `silent`: nothing arrives before the end. */
const connections = ['online', 'offline', 'silent'] as const;

export type Case = {
  end: keyof typeof ends;
  isDisabled: boolean;
  connection: (typeof connections)[number];
  clock: keyof typeof clocks;
};

export const table = Object.keys(ends).flatMap((end) =>
  [false, true].flatMap((isDisabled) =>
    connections.flatMap((connection) =>
      Object.keys(clocks).map((clock) => ({ end, isDisabled, connection, clock }) as unknown as Case),
    ),
  ),
);

/** An authority, an agent and an agent below it, which know a license, and devices with leases. */
export class Chain implements Disposable {
  readonly world: LatchkeyWorld = new LatchkeyWorld({ seed: 7, troubles: ['chain'], sabotage: null });
  readonly case: Case;
  readonly graceMs: number;
  endsAt: number | null = null;
  readonly #devices: Device[] = [];
  #learnedAt = 0;

  constructor(each: Case) {
    this.case = each;
    this.graceMs = graces[each.end];
  }

  async begin(): Promise<void> {
    const { world } = this;
    const { authority } = world;
    const { graceMs } = this;
    const { end, isDisabled, connection, clock } = this.case;
    await world.begin();
    const product = { productKey, name: 'Press', recurring: false, archived: false };
    const licenseTerms = { ...defaultProductTerms, expiryGraceMs: graceMs };
    await authority.write('updateProduct', { ...product, licenseTerms });
    const inMs = ends[end];
    const now = Math.ceil(world.clock.now() / 1_000) * 1_000;
    this.endsAt = inMs === null ? null : now + inMs;
    const change = { expiresAt: this.endsAt, entitlements: ['pro'] };
    const tenant = { accountId: 'default', productKey };
    await authority.write('updateLicense', { tenant, licenseKey: key, change });
    if (isDisabled) await authority.changeElsewhere(key, 'disable');
    for (const site of world.sites) {
      site.verify(key);
      await world.pass(2_000);
    }
    for (const issuer of [null, ...world.sites]) {
      for (const isFar of [false, true]) {
        const name = `a ${isFar ? 'far' : 'near'} device of ${issuer?.place ?? 'the authority'}`;
        const device = new Device(world, { name, issuer, licenseKey: key });
        this.#devices.push(device);
        await this.#told(device);
        device.isAway = isFar && connection !== 'online';
      }
    }
    this.#learnedAt = world.clock.now();
    if (connection !== 'online') world.changeWeather({ away: 'refused' });
    for (const each of [...world.sites, ...this.#devices]) each.clock.jumpWall(clocks[clock]);
  }

  /** Waits until an instant after the end; false: it has passed. */
  async until(afterEndMs: number): Promise<boolean> {
    const { world, endsAt } = this;
    const ms = (endsAt ?? this.#learnedAt) + afterEndMs - world.clock.now();
    if (ms < 0) return false;
    await world.pass(ms);
    if (this.case.connection === 'silent') {
      world.changeWeather({ away: null });
      for (const device of this.#devices) device.isAway = false;
    }
    return true;
  }

  async verify(site: Site): Promise<LicenseResponse> {
    return valueOf(await this.#ask(site));
  }

  async #ask(site: Site): Promise<Result<LicenseResponse>> {
    return await this.#waitFor(site.agent.licenseService.verify(site.tenant(), key, never));
  }

  /** What a program on a device is told; null: nothing is known. */
  async #told(device: Device): Promise<License | null> {
    const found = await this.#waitFor(device.verify());
    if (found.verdict === 'answer') return found.license;
    return found.verdict === 'expired' ? found.ended : null;
  }

  async #waitFor<Answer>(asking: Promise<Answer>): Promise<Answer> {
    let isAnswered = false;
    void asking.finally(() => (isAnswered = true));
    await this.world.time.runUntil(() => isAnswered, 5 * minute);
    return await asking;
  }

  async checkAll(): Promise<void> {
    await this.#checkAuthority();
    for (const site of this.world.sites) {
      this.#checkStored(site);
      await this.#checkAgent(site);
    }
    for (const device of this.#devices) await this.#checkDevice(device);
  }

  async #checkAuthority(): Promise<void> {
    const { world, endsAt, case: each } = this;
    const now = world.clock.now();
    const url = `/api/v2/license/verify?license_key=${key}`;
    const headers = { 'product-secret-key': world.authority.secret, host: 'authority.example' };
    const sent = { method: 'GET', path: url, headers, origin: '', body: null } as const;
    const response = await world.authority.handle(sent, never);
    const { data } = JSON.parse(response?.text ?? '{}') as { data: Record<string, unknown> };
    const isOver = endsAt !== null && now > endsAt + this.graceMs;
    const isActive = endsAt === null || now <= endsAt;
    check(data).toMatchObject({
      enabled: !each.isDisabled && !isOver,
      status: each.isDisabled ? 'disabled' : isOver ? 'expired' : isActive ? 'active' : 'grace',
      entitlements: ['pro'],
    });
  }

  /** What is answered from memory and disk alone, at this very millisecond. */
  #checkStored(site: Site): void {
    const stored = site.agent.licenseService.verifyNow?.(site.tenant(), key) ?? null;
    if (stored === null) return;
    this.#checkSafe(site, stored);
    const { until } = stored.cacheable;
    const { endsAt } = this;
    const now = site.clock.now();
    if (endsAt !== null && now <= endsAt && !this.case.isDisabled) check(until).toBeLessThanOrEqual(endsAt);
  }

  async #checkAgent(site: Site): Promise<void> {
    const { world, endsAt, case: each } = this;
    const given = await this.#ask(site);
    if (given.ok) this.#checkSafe(site, given.value);
    const now = site.clock.now();
    const isValid = !each.isDisabled && (endsAt === null || now <= endsAt + this.graceMs);
    const isKnown = each.connection !== 'offline' || now - this.#learnedAt < freshness.graceMs;
    // Nobody who paid is refused.
    if (isValid && isKnown)
      check([site.place, given]).toMatchObject([
        site.place,
        { ok: true, value: { license: { enabled: true } } },
      ]);
    if (!given.ok) {
      // Only what is too old to be relied on is not answered.
      check(given.problem.code).toBe('verdict_expired');
      check(now - this.#learnedAt).toBeGreaterThan(freshness.graceMs);
      return;
    }
    const { license } = given.value;
    check(license.terms?.entitlements).toEqual(['pro']);
    // While the upstream does not answer, a renewal is possible for `freshness.expiry_grace`.
    const isPossible = endsAt !== null && now > endsAt && now <= endsAt + freshness.expiryGraceMs;
    if (!each.isDisabled && each.connection === 'offline' && each.end === 'near' && isPossible && isKnown)
      check(license).toMatchObject({ enabled: true, status: 'grace' });
    // The upstream's word decides, a while after the end.
    const isOver = endsAt !== null && world.clock.now() > endsAt + this.graceMs + minute;
    if (isOver && each.connection !== 'offline')
      check(license).toMatchObject({ enabled: false, status: each.isDisabled ? 'disabled' : 'expired' });
  }

  async #checkDevice(device: Device): Promise<void> {
    const { world, endsAt, graceMs, case: each } = this;
    const { name, issuer, isAway } = device;
    const askedAt = world.clock.now();
    const license = await this.#told(device);
    const now = world.clock.now();
    const isIn = license?.enabled === true;
    const [end, extended] = [graceMs, Math.max(graceMs, freshness.expiryGraceMs)].map((ms) =>
      endsAt === null ? Infinity : endsAt + ms,
    ) as [number, number];
    // An agent that cannot ask whether the license was renewed lets devices in for as long as programs.
    const isUnsure = each.connection !== 'online' && each.end === 'near' && issuer !== null;
    const mayLast = isUnsure ? extended : end;
    // An issuer whose clock is suspect signs nothing.
    const isSigned = isUnsure && each.connection === 'offline' && each.clock === 'right' && !isAway;
    const mustLast = isSigned ? extended : end;
    // A lease ends at the beginning of the last instant.
    if (isIn) check([name, now < mayLast]).toEqual([name, true]);
    if (isIn) check(license.terms?.entitlements).toEqual(['pro']);
    if (each.isDisabled) check([name, isIn]).toEqual([name, false]);
    if (each.isDisabled || !['right', 'back'].includes(each.clock)) return;
    // Who has paid is let in.
    if (now < mustLast) check([name, isIn]).toEqual([name, true]);
    if (askedAt >= mayLast) check([name, license?.status]).toEqual([name, 'expired']);
  }

  /** Nobody is let in beyond the end and the graces, by the agent's own time and by the true time. */
  #checkSafe(site: Site, { license }: LicenseResponse): void {
    const { endsAt, world, case: each } = this;
    if (each.isDisabled) check(license).toMatchObject({ enabled: false, status: 'disabled' });
    if (!license.enabled) return;
    const latest = endsAt === null ? Infinity : endsAt + Math.max(this.graceMs, freshness.expiryGraceMs);
    check(site.clock.now()).toBeLessThanOrEqual(latest);
    check(world.clock.now()).toBeLessThanOrEqual(latest);
    if (endsAt !== null) check(license.status).toBe(site.clock.now() <= endsAt ? 'active' : 'grace');
  }

  [Symbol.dispose](): void {
    this.world[Symbol.dispose]();
  }
}
