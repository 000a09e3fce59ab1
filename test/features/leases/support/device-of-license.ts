import type { License } from '../../../../src/domain/license.ts';
import { noTerms } from '../../../../src/domain/terms.ts';
import { key } from '../../../support/harness/service-harness.ts';
import { VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { FakeIssuer, HeldDevice } from './holder-harness.ts';

export type Terms = Pick<License, 'expiresAt' | 'graceUntil' | 'usesLimit' | 'terms'>;
export const tenant = { accountId: 'default', productKey: null };

/** A device whose issuer has sold a license with these terms. */
export async function openDevice(termsAt: (now: number) => Terms) {
  const issuer = await FakeIssuer.start(new VirtualTime());
  give(issuer, termsAt(issuer.authority.now));
  const device = await HeldDevice.start(issuer);
  return {
    issuer,
    device,
    start: issuer.authority.now,
    async [Symbol.asyncDispose]() {
      await device[Symbol.asyncDispose]();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

/** The license has these terms from now on. */
export function give(issuer: FakeIssuer, terms: Terms): void {
  issuer.authority.store.licenses.setTerms({ licenseKey: key, ...noTerms, ...terms });
}

/** What a verify says: the members that a program reads, or the code of the problem. */
export async function said(device: HeldDevice) {
  const verified = await device.service.verify(tenant, key, device.signal);
  if (!verified.ok) return verified.problem.code;
  const { enabled, status = null, expiresAt = null, terms } = verified.value.license;
  return { enabled, status, expiresAt, entitlements: terms?.entitlements ?? [] };
}
