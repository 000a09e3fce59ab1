import { expect } from 'vitest';
import type { LicenseResponse } from '../../../../src/service/services.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import { defaultProductTerms } from '../../../../src/domain/catalogue.ts';
import { productKey } from './authority.ts';
import type { Site } from './site.ts';
import { LatchkeyWorld } from './world.ts';
import { valueOf } from '../../../support/harness/service-harness.ts';
import { freshness } from '../machine.ts';

/*
 * What an authority, an agent and an agent below it answer about a license that ends, on virtual time: the whole table of
 * its end, its state, the connection of the agents and their clocks.
 */

export const minute = 60_000;
const day = 1_440 * minute;
export const key = 'KEY-0';
const check: typeof expect = expect;
const never = new AbortController().signal;

/** By how much the wall clocks of the agents are changed after they have learned the license. */
export const clocks = { right: 0, back: -10 * day, ahead: 2 * day, suspect: 40 * day };
/** When the license ends, seen from the moment when the agents learn it; null: never. */
const ends = { past: -minute, near: minute, none: null };
/** The grace of the product of such a license. */
const graces = { past: 0, near: 3 * minute, none: 0 };
/** `silent`: the agents do not reach the upstream before the license has ended. */
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

/** An authority, an agent and an agent below it, which know a license. */
export class Chain implements Disposable {
  readonly world: LatchkeyWorld = new LatchkeyWorld({ seed: 7, troubles: ['chain'], sabotage: null });
  readonly case: Case;
  readonly graceMs: number;
  endsAt: number | null = null;
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
    this.#learnedAt = world.clock.now();
    if (connection !== 'online') world.changeWeather({ away: 'refused' });
    for (const site of world.sites) site.clock.jumpWall(clocks[clock]);
  }

  /** Waits until an instant after the end; false: it has passed. */
  async until(afterEndMs: number): Promise<boolean> {
    const { world, endsAt } = this;
    const ms = (endsAt ?? this.#learnedAt) + afterEndMs - world.clock.now();
    if (ms < 0) return false;
    await world.pass(ms);
    if (this.case.connection === 'silent') world.changeWeather({ away: null });
    return true;
  }

  async verify(site: Site): Promise<LicenseResponse> {
    return valueOf(await this.#ask(site));
  }

  async #ask(site: Site): Promise<Result<LicenseResponse>> {
    let answer: Result<LicenseResponse> | null = null;
    const asking = site.agent.licenseService
      .verify(site.tenant(), key, never)
      .then((given) => (answer = given));
    await this.world.time.runUntil(() => answer !== null, 5 * minute);
    return await asking;
  }

  async checkAll(): Promise<void> {
    await this.#checkAuthority();
    for (const site of this.world.sites) {
      this.#checkStored(site);
      await this.#checkAgent(site);
    }
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
