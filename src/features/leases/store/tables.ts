import type { FeatureTables } from '../../../store/feature-tables.ts';
import { activationReads, activationTable } from './activation.ts';
import { heldLeaseReads, heldLeaseTable } from './held-lease.ts';

const nothing = (): null => null;

export const tables: FeatureTables = {
  reads: (sql) => ({ activations: activationReads(sql) }),
  tables: (sql) => ({ activations: activationTable(sql) }),
  local: {
    reads: (sql) => ({ heldLeases: heldLeaseReads(sql) }),
    tables: (sql) => ({ heldLeases: heldLeaseTable(sql) }),
  },
  effects: {
    // Requests wait for the end of an activation. A renewal would wake the waiting requests of all devices of the license.
    activations: {
      lockLicense: nothing,
      put: ({ licenseKey, state }) => (state === 'active' ? null : { licenseKey }),
      pruneEnded: nothing,
      changeKey: (_, licenseKey) => ({ licenseKey }),
      forgetRequests: nothing,
      // The license changes, too.
      copyToKey: nothing,
      endAll: (licenseKey) => ({ licenseKey }),
      removeNames: nothing,
      removeEmail: nothing,
    },
    heldLeases: {
      // Responses have the key as the issuer spells it.
      put: ({ licenseKey, document }) => ({ licenseKey: document?.license?.licenseKey ?? licenseKey }),
      remove: (licenseKey) => ({ licenseKey }),
    },
  },
};
