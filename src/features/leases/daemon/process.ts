import type { ProcessParts } from '../../../daemon/compose.ts';
import type { FeatureProcess } from '../../../daemon/feature-process.ts';
import { StorageError } from '../../../service/ports.ts';
import type { Status } from '../../../service/status.ts';
import type { AuthorityReader } from '../../../service/tables.ts';
import type { LeaseHolder, LeaseIssuer } from '../service/ports.ts';
import { leaseIssuerOf } from './lease-issuer.ts';
import { leaseMetrics } from './metrics.ts';

declare module '../../../http/app.ts' {
  interface AuthorityParts {
    readonly leaseIssuer: LeaseIssuer;
  }
  interface HolderParts {
    readonly leaseHolder: LeaseHolder;
  }
}

/** The issuer of an authority or an agent. A holder has its parts from its role. */
export function startLeases(parts: ProcessParts): FeatureProcess {
  const { reader, clock, metrics, current } = parts;
  const count = leaseMetrics(metrics, current.configuration.role);
  if (current.configuration.role === 'holder') return { app: { leaseIssuer: null } };
  const leaseIssuer = leaseIssuerOf(parts, count);
  return {
    app: {
      leaseIssuer,
      leaseHolder: null,
      publicHost: () => leaseIssuer.host(),
      seatsOf: async (licenseKey) => await countSeats(reader, licenseKey, clock.now()),
    },
    status: async () => ({ issuer: await issuerStatus(parts, leaseIssuer) }),
    stopWaiting: () => leaseIssuer.stopWaiting(),
  };
}

/** How many devices have asked for seats of a license, and how many have one. */
export async function countSeats(
  { activations }: Pick<AuthorityReader, 'activations'>,
  licenseKey: string,
  now: number,
): Promise<{ activations: number; seatsTaken: number }> {
  return {
    activations: await activations.count({ licenseKey }),
    seatsTaken: await activations.seatsTaken(licenseKey, now, ''),
  };
}

/** Null until `lease setup` was run. */
async function issuerStatus(
  { local, reader, clock }: ProcessParts,
  leaseIssuer: LeaseIssuer,
): Promise<Status['issuer']> {
  const status = await leaseIssuer.status();
  if (status === null) return null;
  const { activations } = local?.lists ?? reader;
  try {
    const all = await activations.count({});
    return { ...status, activations: all, seatsTaken: await activations.count({ seatAt: clock.now() }) };
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    return { ...status, activations: null, seatsTaken: null };
  }
}
