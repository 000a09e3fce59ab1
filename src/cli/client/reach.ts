import { locateDaemon } from '../../config/load.ts';
import { instanceHeader } from '../../domain/header-names.ts';
import type { GlobalOptions } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { formatFaults, toLoadOptions } from '../configuration.ts';
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
  const { stateDir } = found.location;
  const read = readAddress(stateDir);
  if (!read.ok) return read.isAbsent ? noDaemon(stateDir) : fail(exitCode.failed, read.lines);
  const { instance, endpoints } = read.address;
  const credential = withToken ? readToken(stateDir) : noCredential;
  if (!credential.ok) return fail(credential.code, credential.lines);
  const tried: string[] = [];
  for (const endpoint of endpoints) {
    const where = formatEndpoint(endpoint);
    const result = await send(endpoint, request, { ...credential, instance });
    if (result.ok) return result;
    if (result.sent) return unanswered(where, result.reason, request);
    tried.push(`${where}: ${result.reason}`);
  }
  return unreachable(tried);
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
  const probe = recognize(await call(endpoint, { path: '/livez' }, null), instance);
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

const startAdvice = 'Start one: latchkey serve. Or say where it is: --state-dir DIR or --config FILE.';

function noDaemon(stateDir: string): Failure {
  const first = `latchkey: no daemon runs on ${stateDir}: there is no listen.json in it`;
  return fail(exitCode.unreachable, [first, startAdvice]);
}

function unanswered(where: string, reason: string, { method = 'GET' }: Call): Failure {
  const lines = [
    `latchkey: the daemon at ${where} did not answer: ${reason}`,
    ...(method === 'GET' ? [] : ['Whether it did what was asked is not known.']),
  ];
  return fail(exitCode.unreachable, lines, [`${where}: ${reason}`]);
}

function unreachable(tried: readonly string[]): Failure {
  const lines = [
    tried.length === 0
      ? 'latchkey: no daemon can be reached: both listeners are switched off'
      : 'latchkey: no daemon can be reached; looked at',
    ...tried.map((line) => `  ${line}`),
    startAdvice,
  ];
  return fail(exitCode.unreachable, lines, tried);
}

function fail(code: number, lines: readonly string[], tried: readonly string[] = []): Failure {
  return { ok: false, code, lines, tried };
}
