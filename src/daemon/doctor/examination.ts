import { once } from 'node:events';
import { createServer, isIP } from 'node:net';
import { type Configuration } from '../../config/configuration.ts';
import { engineIn } from '../../config/engine.ts';
import { type Finding, type Hint, fail, ok, warn } from '../../domain/finding.ts';
import { formatReason } from '../../config/errors.ts';
import { formatAddress } from '../../config/value/address.ts';
import { certificateEndsSoonMs } from '../../wire/findings.ts';
import { formatDatetime } from '../../domain/time.ts';
import { features } from '../../features.ts';
import { asItsUser, examineFiles, isWindows } from './files.ts';
import { examineContents } from '../store/contents.ts';
import { ListenError } from '../../http/listen.ts';
import { endOf, readFiles } from '../certificate.ts';
import { groupNumber } from '../system/process.ts';
import { databaseIn } from '../../store/sqlite/files/state-directory.ts';
import { type RoleName, roleMark, roleWithArticle } from '../../domain/role.ts';
import { counted } from '../../domain/text.ts';
import { DatabaseRefused, sqliteCode } from '../../store/sqlite/faults.ts';
import { readContents } from '../../store/sqlite/files/contents.ts';
import { findDamage } from '../../store/sqlite/files/backup.ts';
import { findDatabase } from '../../store/sqlite/files/database-file.ts';
import { findNewerSchema } from '../../store/sqlite/files/migrations.ts';

/** The input of the doctor. */
type DoctorInput = {
  configuration: Configuration;
  secretFiles: readonly string[];
  /** The configuration file, if it has secrets. */
  fileWithSecrets: string | null;
  /** A running daemon checks its store itself. Without a daemon, the doctor checks whether a start would work. */
  presence: 'running' | 'absent' | 'unknown';
  /** The instance id of the daemon; null: no daemon has run. */
  instance: string | null;
  /** When the certificate of the running daemon expires; null: it has none. */
  shownUntil: string | null;
  hint: Hint;
  /** The command that starts the daemon. */
  start: string;
};

/** Examines files, store or database, and upstream. Changes nothing. */
export async function examine({
  configuration,
  presence,
  instance,
  shownUntil,
  hint,
  start,
  ...files
}: DoctorInput): Promise<readonly Finding[]> {
  const { stateDir } = configuration;
  return [
    ...examineFiles({ stateDir, ...files }, start),
    ...examineCertificate(configuration, shownUntil, hint),
    ...(presence === 'absent' ? await examineListeners(configuration) : []),
    ...((await engineIn(configuration)?.examine(configuration)) ??
      examineLocalStore(configuration, { presence, hint, start })),
    ...(await examineFeatures(configuration, hint)),
    ...(configuration.role === 'agent' ? await examineUpstreamOf(configuration, instance) : []),
  ];
}

declare module '../../feature.ts' {
  interface Feature {
    /** What it finds for `latchkey doctor`. */
    readonly examine?: (configuration: Configuration, hint: Hint) => Promise<readonly Finding[]>;
  }
}

/** What features find. */
export async function examineFeatures(
  configuration: Configuration,
  hint: DoctorInput['hint'],
): Promise<readonly Finding[]> {
  const found = await Promise.all(
    features.map(async ({ examine: own }) => (await own?.(configuration, hint)) ?? []),
  );
  return found.flat();
}

function examineLocalStore(
  { stateDir, role }: Configuration,
  { presence, ...advice }: Pick<DoctorInput, 'presence' | 'hint' | 'start'>,
): Finding[] {
  return [...(presence === 'running' ? [] : examineStore(stateDir, advice)), ...examineRole(stateDir, role)];
}

/** Loads the client of the upstream for agents only: loading takes most of the time of the command. */
async function examineUpstreamOf(
  configuration: Configuration,
  instance: string | null,
): Promise<readonly Finding[]> {
  const { examineUpstream } = await import('./upstream.ts');
  return (await examineUpstream(configuration, instance)).findings;
}

/** Examines whether a start could listen: opens the port for a moment, and looks up the groups of sockets. */
async function examineListeners({ listen }: Configuration): Promise<Finding[]> {
  const groups = listen.sockets.flatMap(({ group }) => (group === null ? [] : [group]));
  return [
    ...(await Promise.all(listen.tcp.map(examinePort))).flat(),
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
      fail(
        what,
        `stop the program that listens there (${isWindows ? 'netstat -ano' : 'ss -ltnp'} shows it), or choose another listen.tcp`,
      ),
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
function examineCertificate(
  { listen }: Configuration,
  shownUntil: string | null,
  hint: DoctorInput['hint'],
): Finding[] {
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
    ...examineShown(endOf(leaf), shownUntil, hint),
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
  return leftMs < certificateEndsSoonMs
    ? warn(`${name} expires soon, on ${at}`, newOne)
    : ok(`${name} is valid until ${at}`);
}

function examineShown(notAfter: number, shownUntil: string | null, hint: DoctorInput['hint']): Finding[] {
  if (shownUntil === null || shownUntil === formatDatetime(notAfter)) return [];
  const what = `the daemon still presents the previous certificate, valid until ${shownUntil}`;
  return [warn(what, `reload it: ${hint('reload')}`)];
}

function makeFor(hosts: readonly string[]): string {
  return `latchkey certificate make --host ${hosts.join(',')} --out DIR`;
}

/** Examines a store that no daemon uses. Changes nothing. */
function examineStore(stateDir: string, { hint, start }: { hint: Hint; start: string }): Finding[] {
  const advice = `restore a backup: ${hint('restore FILE')}`;
  const path = databaseIn(stateDir);
  try {
    if (!findDatabase(path)) return [];
    const finding = examineFile(path, advice);
    return finding.level === 'ok' ? [finding, ...examineOutbox(stateDir, start)] : [finding];
  } catch (error) {
    if (error instanceof DatabaseRefused) return [fail(error.message, advice)];
    const unread = `the store ${path} cannot be examined`;
    if (error instanceof Error && sqliteCode(error) !== null) {
      return [
        fail(`${unread}: ${error.message}`, `check that its disk works and has free space, or ${asItsUser}`),
      ];
    }
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    return [fail(`${unread}: ${formatReason(error)}`, asItsUser)];
  }
}

/** Examines whether the store has the configured role: a start refuses another role. */
function examineRole(stateDir: string, configured: RoleName): Finding[] {
  const examined = examineContents(stateDir);
  if (!examined.ok) return [];
  const { role, records } = examined.contents;
  const { products, collections, coupons, accounts } = records;
  if (role === configured || (role !== 'agent' && role !== 'authority' && role !== 'holder')) return [];
  if (role === 'authority' && products + collections + coupons + accounts === 0) return [];
  const owner = roleWithArticle[role];
  const found = `the store in ${stateDir} is ${owner}'s, but the configuration has ${roleMark[configured]}`;
  const advice: Readonly<Record<RoleName, string>> = {
    agent: 'put the upstream back',
    authority: `remove ${configured === 'holder' ? 'leases.issuer' : 'the upstream'}`,
    holder: 'put leases.issuer back',
  };
  return [fail(found, `${advice[role]}, or choose another state_dir for ${roleWithArticle[configured]}`)];
}

function examineFile(path: string, advice: string): Finding {
  const damage = findDamage(path);
  if (damage !== null) return fail(`the store ${path} is damaged: ${damage}`, advice);
  const newer = findNewerSchema(path);
  return newer === null
    ? ok(`the store ${path} is sound`)
    : fail(`the store ${path} cannot be used: ${newer}`, 'start it with the newer Latchkey');
}

function examineOutbox(stateDir: string, start: string): Finding[] {
  const { unfinished } = readContents(stateDir, Date.now());
  const count = Object.values(unfinished).reduce((sum, each) => sum + each, 0);
  return count === 0
    ? []
    : [warn(`${counted(count, 'change')} in it did not reach the upstream yet`, `start it: ${start}`)];
}
