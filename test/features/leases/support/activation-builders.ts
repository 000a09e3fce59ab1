import type { Activation, Lease, LeaseRequest } from '../../../../src/features/leases/domain/lease.ts';
import { defaultLeaseTerms, type LeaseTerms } from '../../../../src/domain/catalogue.ts';
import { at, buildLicense } from '../../../support/builders/store-builders.ts';

/** The thumbprint of a device's key. */
export function thumbprint(name: string): string {
  return name.padEnd(43, '_');
}

export function buildTerms(changes: Partial<LeaseTerms> = {}): LeaseTerms {
  return { ...defaultLeaseTerms, ...changes };
}

export function buildRequest(changes: Partial<LeaseRequest> = {}): LeaseRequest {
  return {
    act: 'take',
    productKey: 'press',
    licenseKey: 'KEY-1',
    seq: 1,
    challenge: null,
    nonce: null,
    deviceName: 'studio',
    replaces: null,
    activationId: null,
    uses: { recorded: 0, returned: 0 },
    ...changes,
  };
}

const dayMs = 86_400_000;

/** The first lease of a device. */
export function buildLease(changes: Partial<Lease> = {}): Lease {
  return {
    activationId: 'activation-1',
    productKey: 'press',
    license: buildLicense({ buyerEmail: '' }),
    expiresAt: at + 30 * dayMs,
    issuedAt: at,
    refreshAt: at + dayMs,
    rev: at,
    seats: null,
    device: thumbprint('device-1'),
    nonce: null,
    ...changes,
  };
}

/** An activation with a seat and a lease, from the device's first request. */
export function buildActivation(changes: Partial<Activation> = {}): Activation {
  const activationId = changes.activationId ?? 'activation-1';
  const device = changes.device ?? thumbprint('device-1');
  const lease = buildLease({ activationId, device });
  const { expiresAt } = lease;
  return {
    activationId,
    licenseKey: 'KEY-1',
    productKey: 'press',
    device,
    deviceName: 'studio',
    state: 'active',
    seq: 1,
    digest: 'digest of 1',
    answer: { kind: 'lease', lease },
    rev: at,
    expiresAt,
    seatUntil: expiresAt + 90 * dayMs,
    uses: { recorded: 0, returned: 0 },
    createdAt: at,
    renewedAt: at,
    movedAt: [],
    challengedAt: [],
    copiedAt: null,
    ...changes,
  };
}
