import { locateDaemon } from '../../config/load.ts';
import type { Location } from '../../config/location.ts';
import type { NamedBy } from '../../config/source.ts';
import { instanceHeader } from '../../domain/header-names.ts';
import type { GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatFaults, toLoadOptions } from '../configuration.ts';
import { formatPath, programName } from '../hint.ts';
import { startCommand } from '../start-command.ts';
import { type Answer, type Call, call, type CallResult } from './call.ts';
import { readToken } from './admin-token.ts';
import { distrust, type Endpoint, formatEndpoint, readAddress } from './endpoint.ts';

/** Why a command ends without an answer. */
export interface Failure {
  readonly ok: false;
  readonly code: number;
  readonly lines: readonly string[];
  /** The endpoints tried, a line each: where, and why it is not the daemon. */
  readonly tried: readonly string[];
  /** Whether something takes connections there and answers none: a daemon that hangs. */
  readonly isSilent: boolean;
  /** Whether a process holds the state directory nevertheless. */
  readonly isHeld: boolean;
}

/** What a request is sent with; `token` null: without a credential. */
interface Sender {
  readonly instance: string;
  readonly token: string | null;
  readonly knownTo: readonly number[];
}

/** Tries each address of the daemon until one answers; a request that may have arrived is never repeated. */
export async function reachDaemon(
  options: GlobalOptions,
  request: Call,
  withToken: boolean,
): Promise<{ readonly ok: true; readonly answer: Answer } | Failure> {
  const found = locateDaemon(toLoadOptions(options));
  if (!found.ok) return fail(exitCode.configuration, formatFaults(found.faults));
  const { location } = found;
  const place = formatPlace(location);
  const lookedOn = `It was looked for on ${place}.`;
  const read = readAddress(location.stateDir);
  if (!read.ok && read.isAbsent) return (await held(location, [])) ?? noDaemon(location, options);
  if (!read.ok) return fail(exitCode.failed, [...read.lines, lookedOn]);
  const { instance, endpoints } = read.address;
  const credential = withToken ? readToken(location.stateDir) : noCredential;
  if (!credential.ok) return fail(credential.code, [...credential.lines, lookedOn]);
  const tried: string[] = [];
  for (const endpoint of endpoints) {
    const where = formatEndpoint(endpoint);
    const result = await send(endpoint, request, { ...credential, instance });
    if (result.ok) return result;
    if (result.sent) return unanswered({ where, place, result }, request);
    // Its other address would be as silent. One that comes second may be another program's by now.
    if (result.silent === true && tried.length === 0)
      return silent({ where, place, result }, startCommand(options, location.stateDir));
    tried.push(`${where}: ${result.reason}`);
  }
  const holder = tried.length === 0 ? null : await held(location, tried);
  return holder ?? unreachable(tried, place, startCommand(options, location.stateDir));
}

const noCredential = { ok: true, token: null, knownTo: [] } as const;

/**
 * Sends a request to the daemon of the state directory, recognized by its instance id.
 *
 * A killed daemon leaves `listen.json` behind, and another daemon may listen at its address now. So a
 * request without a token goes first, which takes about a millisecond; the token is sent only after the
 * right instance answered it.
 */
async function send(endpoint: Endpoint, request: Call, sender: Sender): Promise<CallResult> {
  const { instance, token, knownTo } = sender;
  if (token === null) return recognize(await call(endpoint, request, null), instance);
  const doubt = distrust(endpoint, knownTo);
  if (doubt !== null) return { ok: false, sent: false, reason: doubt };
  const probe = recognize(await call(endpoint, { path: '/livez', signal: request.signal }, null), instance);
  return probe.ok ? call(endpoint, request, token) : { ...probe, sent: false };
}

/** Turns the answer of any other instance into a failure. */
function recognize(result: CallResult, instance: string): CallResult {
  if (!result.ok) return result;
  const answered = result.answer.headers[instanceHeader.toLowerCase()]?.toString().slice(0, 64);
  if (answered === instance) return result;
  const reason =
    answered === undefined
      ? 'what answers there is no latchkey daemon'
      : `the daemon of another state directory listens there, instance ${answered}`;
  return { ok: false, sent: false, reason };
}

function adviceToStart(command: string): readonly string[] {
  return [`Start it: ${command}`, 'Or say where another one is: --state-dir DIR or --config FILE'];
}

function noDaemon(location: Location, options: GlobalOptions): Failure {
  if (location.file === null && location.namedBy === 'default') return nothingHere(location);
  const first = `latchkey: no daemon runs on ${formatPlace(location)}: there is no listen.json in it`;
  return fail(exitCode.unreachable, [first, ...adviceToStart(startCommand(options, location.stateDir))]);
}

/** Of a state directory that a process holds: to start another one would be refused. Null: none does. */
async function held(location: Location, tried: readonly string[]): Promise<Failure | null> {
  const { isHeld } = await import('../../store/sqlite/files/lock.ts');
  if (!isHeld(location.stateDir)) return null;
  const why = tried.length === 0 ? 'there is no listen.json in it' : 'looked at';
  const lines = [
    `latchkey: a process holds ${formatPlace(location)}, and cannot be reached: ${why}`,
    ...tried.map((line) => `  ${line}`),
    'It is starting or ending, or its files were removed: it makes them again within a minute where it can.',
    'Its log says more.',
  ];
  return { ...fail(exitCode.unreachable, lines, tried), isHeld: true };
}

/** What somebody is told who has just begun, or is in the wrong directory. */
function nothingHere({ places, stateDir }: Location): Failure {
  return fail(exitCode.unreachable, [
    'latchkey: there is no configuration, and no daemon runs here; looked at',
    ...places.map((path) => `  ${formatPath(path)}`),
    `  ${stateDir} (where a daemon without a configuration keeps its state)`,
    `Write a configuration: ${programName()} init`,
    `Or see first what it does: ${programName()} demo`,
    'Or say where a daemon is: --state-dir DIR or --config FILE',
  ]);
}

/** An endpoint of a daemon, and what came of asking there. */
interface Attempt {
  readonly where: string;
  readonly place: string;
  readonly result: CallResult & { readonly ok: false };
}

/** Nothing but whether it lives was asked. */
function silent({ where, place, result: { reason } }: Attempt, start: string): Failure {
  const lines = [
    `latchkey: the daemon on ${place} does not answer at ${where}: ${reason}`,
    `It hangs: end its process, then start it: ${start}`,
  ];
  return { ...fail(exitCode.unreachable, lines, [`${where}: ${reason}`]), isSilent: true };
}

function unanswered({ where, place, result }: Attempt, { method = 'GET' }: Call): Failure {
  const { reason } = result;
  const lines = [
    `latchkey: the daemon on ${place} did not answer at ${where}: ${reason}`,
    ...(method === 'GET' ? [] : ['Whether it did what was asked is not known.']),
  ];
  return { ...fail(exitCode.unreachable, lines, [`${where}: ${reason}`]), isSilent: result.silent === true };
}

function unreachable(tried: readonly string[], place: string, start: string): Failure {
  const lines = [
    tried.length === 0
      ? `latchkey: the daemon on ${place} cannot be reached: both listeners are switched off`
      : `latchkey: no daemon can be reached on ${place}; looked at`,
    ...tried.map((line) => `  ${line}`),
    ...adviceToStart(start),
  ];
  return fail(exitCode.unreachable, lines, tried);
}

/** The state directory, and what says that it is this one. */
function formatPlace({ stateDir, namedBy, file }: Location): string {
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
  return { ok: false, code, lines, tried, isSilent: false, isHeld: false };
}
