import { noUses, type Activation, type HeldLease } from '../../../../src/features/leases/domain/lease.ts';
import { at } from '../../../support/builders/store-builders.ts';

export function buildHeldLease(with_: Partial<HeldLease> = {}): HeldLease {
  return {
    licenseKey: 'KEY-1',
    productKey: 'press',
    activationId: null,
    document: null,
    rev: 0,
    seq: 1,
    request: null,
    uses: noUses,
    confirmedUses: noUses,
    wanted: 'active',
    createdAt: at,
    ...with_,
  };
}

export function buildActivation(with_: Partial<Activation> = {}): Activation {
  return {
    activationId: 'a',
    licenseKey: 'KEY-1',
    productKey: 'press',
    device: 'd1',
    deviceName: 'laptop',
    state: 'active',
    seq: 2,
    digest: 'digest',
    answer: {
      kind: 'notice',
      notice: {
        activationId: 'a',
        licenseKey: 'KEY-1',
        state: 'disabled',
        rev: at,
        issuedAt: at,
        device: 'd1',
      },
    },
    rev: at,
    expiresAt: at + 5,
    seatUntil: at + 10,
    uses: { recorded: 3, returned: 1 },
    createdAt: at - 10,
    renewedAt: at,
    movedAt: [],
    challengedAt: [at - 3],
    copiedAt: null,
    ...with_,
  };
}
