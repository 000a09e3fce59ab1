import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { locateDaemon, type Location } from '../../config/load.ts';
import type { NamedBy } from '../../config/source.ts';
import { instanceHeader } from '../../domain/header-names.ts';
import { type Claim, isProofOf, proofObject } from '../../wire/proof.ts';
import type { GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatConfigErrors, toLoadOptions } from '../configuration.ts';
import { formatPath, programName, startCommand } from '../hint.ts';
import { type DaemonResponse, type Call, call, type CallResult, Connection } from './call.ts';
import {
  type Credential,
  distrust,
  type Endpoint,
  formatEndpoint,
  readAddress,
  readToken,
} from './endpoint.ts';

export interface Failure {
  readonly ok: false;
  readonly code: number;
  readonly lines: readonly string[];
  /** The endpoints that were tried, and why each failed. */
  readonly tried: readonly string[];
  /** Whether the daemon accepts connections and does not respond: it hangs. */
  readonly isSilent: boolean;
  /** Whether a process has locked the state directory. */
  readonly isLocked: boolean;
  /** Whether something listens there that did not prove that it is the daemon. */
  readonly isUnproven: boolean;
}

/** The instance that must respond, and the token to send; null for none. */
interface Sender extends Credential {
  readonly instance: string;
}

/** Tries each address of the daemon until one responds. A request that may have arrived is never repeated. */
export async function callDaemon(
  options: GlobalOptions,
  request: Call,
  withToken: boolean,
): Promise<{ readonly ok: true; readonly answer: DaemonResponse } | Failure> {
  const located = locateDaemon(toLoadOptions(options));
  if (!located.ok) return fail(exitCode.configuration, formatConfigErrors(located.errors));
  const { location } = located;
  const directory = formatDirectory(location);
  const lookedAt = `It was looked for on ${directory}.`;
  const read = readAddress(location.stateDir);
  if (!read.ok && read.missing !== 'unreadable') {
    return (await findLock(location, [])) ?? (await noDaemon(location, options, read.missing === 'copied'));
  }
  if (!read.ok) return fail(exitCode.failed, [...read.lines, lookedAt]);
  const { instance, endpoints } = read.address;
  const credential = withToken ? readToken(location.stateDir) : readProof(location.stateDir);
  if (!credential.ok) return fail(credential.code, [...credential.lines, lookedAt]);
  if (credential.token !== null && credential.adminToken === null) options.warn?.(unprovenWarning);
  const tried: string[] = [];
  let isDoubted = false;
  for (const endpoint of endpoints) {
    const where = formatEndpoint(endpoint);
    const result = await send(endpoint, request, { ...credential, instance });
    if (result.ok) return result;
    if (result.sent) return unanswered({ where, directory, result }, request);
    // The other address of a daemon that hangs is silent too. A later address may belong to another program by now.
    if (result.silent === true && tried.length === 0)
      return silent({ where, directory, result }, await startCommand(options, location.stateDir));
    tried.push(`${where}: ${result.reason}`);
    isDoubted ||= result.doubted === true;
  }
  if (isDoubted) return doubted(tried, { directory, withToken });
  const holder = tried.length === 0 ? null : await findLock(location, tried);
  return holder ?? unreachable(tried, directory, await startCommand(options, location.stateDir));
}

/** For a request without a token. A user who cannot read `admin.token` gets the response without a proof. */
function readProof(stateDir: string): { readonly ok: true } & Credential {
  const read = readToken(stateDir);
  return { ok: true, token: null, adminToken: read.ok ? read.adminToken : null, knownTo: [] };
}

const unprovenWarning =
  'latchkey: LATCHKEY_TOKEN is sent without a proof that this is the daemon: there is no admin.token to check with';

/**
 * Sends a request to the daemon of the state directory, recognized by its instance id.
 *
 * A killed daemon leaves `listen.json` behind, and any program may listen at its address now, or forward to the daemon
 * elsewhere. So the daemon must first prove that it knows the token in `admin.token`, and that it accepted this very
 * connection at the address that was dialled. The token is sent on the same connection. The responses to requests without
 * a token are proven too, if this user can read `admin.token`.
 */
async function send(endpoint: Endpoint, request: Call, sender: Sender): Promise<CallResult> {
  const { instance, token, adminToken, knownTo } = sender;
  using connection = new Connection(endpoint);
  if (token === null && adminToken === null)
    return recognize(await call(connection, request, null), instance);
  const reason = token === null ? null : distrust(endpoint, { knownTo, isProven: adminToken !== null });
  if (reason !== null) return { ok: false, sent: false, reason };
  const nonce = randomBytes(24).toString('base64url');
  const probe = { path: '/livez', query: { nonce }, signal: request.signal };
  const result = recognize(await call(connection, probe, null), instance);
  if (!result.ok) return { ...result, sent: false };
  if (adminToken === null) return await call(connection, request, token);
  const claim = { nonce, instance, address: connection.address };
  const doubt = findDoubt(result.answer.body, claim, adminToken);
  return doubt === null
    ? await call(connection, request, token)
    : { ok: false, sent: false, doubted: true, reason: doubt };
}

const proven = z.object({ proof: proofObject });

/** Why a response to the probe does not prove the claim, or null. */
function findDoubt(body: unknown, claim: Claim, adminToken: string): string | null {
  const read = proven.safeParse(body);
  if (!read.success)
    return 'the daemon there cannot prove that it knows admin.token: restart it after the upgrade';
  const { address, hmac } = read.data.proof;
  if (!isProofOf(hmac, adminToken, { ...claim, address }))
    return 'what listens there does not know the token in admin.token; if the file was replaced, restart the daemon';
  return address === claim.address ? null : `a program there forwards to the daemon at ${address}`;
}

/** Turns the response of another instance into a failure. */
function recognize(result: CallResult, instance: string): CallResult {
  if (!result.ok) return result;
  const answered = result.answer.headers[instanceHeader.toLowerCase()]?.toString().slice(0, 64);
  if (answered === instance) return result;
  const reason =
    answered === undefined
      ? 'something other than Latchkey is listening there'
      : `the daemon of another state directory listens there, instance ${answered}`;
  return { ok: false, sent: false, reason };
}

/** Something listens at the address, but did not prove that it is the daemon. */
function doubted(
  tried: readonly string[],
  { directory, withToken }: { directory: string; withToken: boolean },
): Failure {
  const lines = [
    `latchkey: ${withToken ? 'the token was not sent: ' : ''}no proof that the daemon on ${directory} listens there; looked at`,
    ...tried.map((line) => `  ${line}`),
  ];
  return { ...fail(exitCode.unreachable, lines, tried), isUnproven: true };
}

function adviceToStart(command: string): readonly string[] {
  return [`Start it: ${command}`, 'To use another daemon, pass --state-dir DIR or --config FILE'];
}

async function noDaemon(location: Location, options: GlobalOptions, isCopy: boolean): Promise<Failure> {
  if (isCopy) return await noDaemonOfCopy(location, options);
  if (location.file === null && location.namedBy === 'default') return noConfiguration(location);
  const first = `latchkey: no daemon runs on ${formatDirectory(location)}: there is no listen.json in it`;
  return fail(exitCode.unreachable, [
    first,
    ...adviceToStart(await startCommand(options, location.stateDir)),
  ]);
}

async function noDaemonOfCopy(location: Location, options: GlobalOptions): Promise<Failure> {
  const why = 'it is a copy, and its listen.json is that of the original';
  const lines = [
    `latchkey: no daemon runs on ${formatDirectory(location)}: ${why}`,
    'To use the daemon of the original, pass --state-dir DIR or --config FILE',
    `To start this copy, never while the original runs: ${await startCommand(options, location.stateDir)}`,
  ];
  return fail(exitCode.unreachable, lines, [why]);
}

/** The failure if a process has locked the state directory, so that no other daemon can start there; else null. */
async function findLock(location: Location, tried: readonly string[]): Promise<Failure | null> {
  const { isLocked } = await import('../../store/sqlite/files/state-directory.ts');
  if (!isLocked(location.stateDir)) return null;
  const why = tried.length === 0 ? 'its addresses are not in listen.json' : 'looked at';
  const lines = [
    `latchkey: a process has locked ${formatDirectory(location)}, and cannot be reached: ${why}`,
    ...tried.map((line) => `  ${line}`),
    'It is starting or ending, or its files were removed. It writes them again within a minute if it can.',
    'See its log.',
  ];
  return { ...fail(exitCode.unreachable, lines, tried), isLocked: true };
}

/** The user is new, or is in the wrong directory. */
function noConfiguration({ searchedPaths, stateDir }: Location): Failure {
  return fail(exitCode.unreachable, [
    'latchkey: there is no configuration, and no daemon runs here; looked at',
    ...searchedPaths.map((path) => `  ${formatPath(path)}`),
    `  ${stateDir} (where a daemon without a configuration keeps its state)`,
    `Write a configuration: ${programName()} init`,
    `Or see what it does: ${programName()} demo`,
    'To use a running daemon, pass --state-dir DIR or --config FILE',
  ]);
}

interface Attempt {
  readonly where: string;
  readonly directory: string;
  readonly result: CallResult & { readonly ok: false };
}

/** Only the health check was sent. */
function silent({ where, directory, result: { reason } }: Attempt, start: string): Failure {
  const lines = [
    `latchkey: the daemon on ${directory} does not answer at ${where}: ${reason}`,
    `It hangs: end its process, then start it: ${start}`,
  ];
  return { ...fail(exitCode.unreachable, lines, [`${where}: ${reason}`]), isSilent: true };
}

function unanswered({ where, directory, result }: Attempt, { method = 'GET' }: Call): Failure {
  const { reason } = result;
  const lines = [
    `latchkey: the daemon on ${directory} did not answer at ${where}: ${reason}`,
    ...(method === 'GET' ? [] : ['The change may or may not have been made.']),
  ];
  return { ...fail(exitCode.unreachable, lines, [`${where}: ${reason}`]), isSilent: result.silent === true };
}

function unreachable(tried: readonly string[], directory: string, start: string): Failure {
  const lines = [
    tried.length === 0
      ? `latchkey: the daemon on ${directory} cannot be reached: both listeners are switched off`
      : `latchkey: no daemon can be reached on ${directory}; looked at`,
    ...tried.map((line) => `  ${line}`),
    ...adviceToStart(start),
  ];
  return fail(exitCode.unreachable, lines, tried);
}

/** The state directory, and where its path comes from. */
function formatDirectory({ stateDir, namedBy, file }: Location): string {
  const source = file === null ? null : formatPath(file);
  const origins: Readonly<Record<NamedBy, string>> = {
    flag: 'from --state-dir',
    environment: 'from LATCHKEY_STATE_DIR',
    file: `from ${source}`,
    default: source === null ? 'the default' : `the default, since ${source} names none`,
  };
  return `${formatPath(stateDir)} (${origins[namedBy]})`;
}

function fail(code: number, lines: readonly string[], tried: readonly string[] = []): Failure {
  return { ok: false, code, lines, tried, isSilent: false, isLocked: false, isUnproven: false };
}
