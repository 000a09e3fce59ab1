import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Configuration } from '../../config/configuration.ts';
import { formatReason } from '../../config/fault/fault.ts';
import { fail, type Finding } from '../../config/fault/finding.ts';
import { formatAddress } from '../../config/value/address.ts';
import { ListenError } from '../../http/listen.ts';
import { groupNumber } from '../system/unix-group.ts';

/** Looks whether a start could listen where it is configured to: the port is taken for a moment, and groups looked up. */
export async function examineListeners({ listen }: Configuration): Promise<Finding[]> {
  const groups = listen.sockets.flatMap(({ group }) => (group === null ? [] : [group]));
  return [
    ...(listen.tcp === null ? [] : await examinePort(listen.tcp)),
    ...[...new Set(groups)].flatMap(examineGroup),
  ];
}

async function examinePort(address: { host: string; port: number }): Promise<Finding[]> {
  const server = createServer();
  try {
    await once(server.listen(address), 'listening');
    return [];
  } catch (error) {
    const what = `a start cannot listen on ${formatAddress(address)}: ${formatReason(error)}`;
    return [fail(what, 'stop what listens there (ss -ltnp shows it), or choose another listen.tcp')];
  } finally {
    server.close();
  }
}

function examineGroup(group: string): Finding[] {
  try {
    groupNumber(group);
    return [];
  } catch (error) {
    if (!(error instanceof ListenError)) throw error;
    return [
      fail(
        `a start cannot set the group of a socket in listen.sockets: ${error.message}`,
        'correct its group',
      ),
    ];
  }
}
