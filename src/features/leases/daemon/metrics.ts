import { type GaugeDescription, one, type Sample } from '../../../daemon/gauges.ts';
import type { Metrics } from '../../../daemon/metrics.ts';
import type { RoleName } from '../../../domain/role.ts';
import type { HolderStatus, LeaseIssuerStatus } from '../../../service/status.ts';

/** Adds the metrics of leases. Returns what counts a request: `lease`, `notice`, `unchanged` or the code of a problem. */
export function leaseMetrics(metrics: Metrics, role: RoleName): (result: string) => void {
  const requests = metrics.counter('lease_requests_total', 'Requests of devices answered.', ['result']);
  metrics.addGauges(role === 'holder' ? holderGauges : issuerGauges);
  return (result) => requests.inc({ result });
}

/** The gauges of an issuer of leases: an authority or an agent. */
const issuerGauges: readonly GaugeDescription[] = [
  {
    name: 'lease_waiting',
    help: 'Requests of devices that wait for a change of their license.',
    read: ofIssuer(({ waiting }) => one(waiting)),
  },
  {
    name: 'lease_seats_taken',
    help: 'Devices that have a seat now.',
    read: ofIssuer(({ seatsTaken }) => (seatsTaken === null ? [] : one(seatsTaken))),
  },
  {
    name: 'lease_signing_key_expiry_timestamp_seconds',
    help: 'When the key that signs leases ends.',
    read: ofIssuer(({ notAfter }) => one(notAfter / 1000)),
  },
];

/** The gauges of a holder of leases. */
const holderGauges: readonly GaugeDescription[] = [
  {
    name: 'issuer_last_success_timestamp_seconds',
    help: 'When the issuer of leases last answered, since the start; 0: never.',
    read: ofHolder(({ lastSuccessAt }) => one((lastSuccessAt ?? 0) / 1000)),
  },
  {
    name: 'lease_expiry_timestamp_seconds',
    help: 'When the first lease of this device expires; 0: there is no valid lease.',
    read: ofHolder(({ nextEnd }) => one((nextEnd ?? 0) / 1000)),
  },
  {
    name: 'lease_pending_uses',
    help: 'Uses that the issuer has not confirmed.',
    read: ofHolder(({ pendingUses }) => one(pendingUses)),
  },
];

function ofIssuer(read: (issuer: LeaseIssuerStatus) => readonly Sample[]): GaugeDescription['read'] {
  return ({ status: { issuer } }) => (issuer === null ? [] : read(issuer));
}

function ofHolder(read: (leases: HolderStatus) => readonly Sample[]): GaugeDescription['read'] {
  return ({ status: { leases } }) => (leases === null ? [] : read(leases));
}
