import { commandGroup, helpLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';
import { noLocks } from '../../service/locks.ts';
import { tables } from './store/tables.ts';
import { leaseChecks } from './wire/checks.ts';

/** Signed statements that a license is valid on a device: their issuer and their holder. */
export const leases: Feature = {
  name: 'leases',
  routes: async () => {
    const [{ leaseRoutes }, { agentLeaseRoutes }, { activationRoutes }] = await Promise.all([
      import('./http/lease.ts'),
      import('./http/agent-lease.ts'),
      import('./http/activation.ts'),
    ]);
    return [...leaseRoutes, ...agentLeaseRoutes, ...activationRoutes];
  },
  roles: { holder: async () => (await import('./daemon/holder.ts')).holderRole },
  useCases: {
    load: () => import('./service/use-cases.ts'),
    locks: {
      answerLeaseRequest: noLocks,
      endActivation: noLocks,
      blockActivation: noLocks,
      recordExpiringLeases: noLocks,
    },
    byOneNode: { recordExpiringLeases: { ok: true, value: { events: 0 } } },
    local: [
      'answerAgentLeaseRequest',
      'bindIssuer',
      'correctHeldLease',
      'countHeldUse',
      'endHeldLease',
      'holdLease',
      'recordLeaseAnswer',
      'recordLeaseRefusal',
      'storeLeaseRequest',
    ],
    essential: [
      'bindIssuer',
      'correctHeldLease',
      'storeLeaseRequest',
      'recordLeaseAnswer',
      'recordLeaseRefusal',
    ],
  },
  tables,
  lists: ['activations'],
  onKeyChange: ({ activations }, from, to) => activations.changeKey(from, to),
  onCopy: ({ activations }) => activations.forgetRequests(),
  process: async (parts) => (await import('./daemon/process.ts')).startLeases(parts),
  findings: leaseChecks,
  timedEvents: async (writer) => await writer.write('recordExpiringLeases', {}),
  commands: [
    { name: 'activate', load: async () => (await import('./cli/lease.ts')).activate },
    { name: 'deactivate', load: async () => (await import('./cli/lease.ts')).deactivate },
    commandGroup(
      'lease',
      'Set up leases, sign and install them, rotate the keys that sign them',
      () => import('./cli/lease.ts'),
    ),
    commandGroup(
      'activation',
      'List, end and block devices that have asked for seats',
      () => import('./cli/activation.ts'),
    ),
  ],
  licensePart: async () => (await import('./cli/activation.ts')).licensePart,
  examine: async (...asked) => (await import('./daemon/examine.ts')).examine(...asked),
  help: {
    'Use license keys': [helpLine('activate deactivate', 'Take a seat for this device, or give it back')],
    Lease: [
      helpLine('lease', 'Set up and sign leases; rotate the signing keys'),
      helpLine('activation', 'List, end and block the devices that have seats'),
    ],
  },
};
