import { once } from 'node:events';
import { createServer, isIP } from 'node:net';
import type { Configuration } from '../../config/configuration.ts';
import { formatReason } from '../../config/errors.ts';
import { fail, type Finding, ok, warn } from '../../config/finding.ts';
import { formatAddress } from '../../config/value/address.ts';
import { formatDatetime } from '../../domain/datetime.ts';
import { ListenError } from '../../http/listen.ts';
import { endOf, readFiles, soonMs } from '../certificate.ts';
import { groupNumber } from '../unix-sockets.ts';

/** Examines whether a start could listen: opens the port for a moment, and looks up the groups of sockets. */
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
    return [
      fail(what, 'stop the program that listens there (ss -ltnp shows it), or choose another listen.tcp'),
    ];
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

const newOne = 'put a new one into the files of listen.tls, and reload';

/**
 * Examines the certificate in the files of `listen.tls`: when it expires, for which hosts it is valid, and whether the
 * running daemon presents it. `shownUntil`: when the presented certificate expires, as in the status; null: none.
 */
export function examineCertificate({ listen }: Configuration, shownUntil: string | null): Finding[] {
  if (listen.tls === null) return [];
  const read = readFiles(listen.tls);
  if (!read.ok) return [fail(`listen.tls.${read.key}: ${read.text}`, 'correct it, and reload')];
  const { leaf } = read.identity;
  const others = listen.allowedHosts.filter(
    (host) => (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) === undefined,
  );
  const name = `the certificate ${listen.tls.certFile}`;
  return [
    examineEnd(name, endOf(leaf)),
    ...examineShown(endOf(leaf), shownUntil),
    ...others.map((host) =>
      fail(
        `${name} is not valid for ${host}, a host of listen.allowed_hosts`,
        `make one for it: ${makeFor(others)}`,
      ),
    ),
  ];
}

function examineEnd(name: string, notAfter: number): Finding {
  const leftMs = notAfter - Date.now();
  const at = formatDatetime(notAfter);
  if (leftMs <= 0) return fail(`${name} expired on ${at}: callers refuse it`, newOne);
  return leftMs < soonMs
    ? warn(`${name} expires soon, on ${at}`, newOne)
    : ok(`${name} is valid until ${at}`);
}

function examineShown(notAfter: number, shownUntil: string | null): Finding[] {
  if (shownUntil === null || shownUntil === formatDatetime(notAfter)) return [];
  const what = `the daemon still presents the previous certificate, valid until ${shownUntil}`;
  return [warn(what, 'reload it: systemctl reload latchkey, or send it SIGHUP')];
}

function makeFor(hosts: readonly string[]): string {
  return `latchkey certificate make --host ${hosts.join(',')} --out DIR`;
}
