import { locateDaemon } from '../../config/load.ts';
import { type Answer, type Call, call } from './call.ts';
import type { GlobalOptions } from '../command.ts';
import { distrust, findEndpoints, formatEndpoint } from './endpoint.ts';
import { exitCode } from '../exit-code.ts';
import { formatFaults, toLoadOptions } from '../settings.ts';
import { readToken } from './credential.ts';

/** Why a command ends without an answer. */
interface Failure {
  readonly ok: false;
  readonly code: number;
  readonly lines: readonly string[];
}

/** Tries each way to the daemon until one answers; a request that may have arrived is never repeated. */
export async function reachDaemon(
  options: GlobalOptions,
  request: Call,
  withToken: boolean,
): Promise<{ readonly ok: true; readonly answer: Answer } | Failure> {
  const found = locateDaemon(toLoadOptions(options));
  if (!found.ok) return { ok: false, code: exitCode.configuration, lines: formatFaults(found.faults) };
  const token = withToken
    ? readToken(found.location.stateDir)
    : { ok: true as const, token: null, knownTo: [] };
  if (!token.ok) return token;
  const looked: string[] = [];
  for (const endpoint of findEndpoints(found.location)) {
    const where = formatEndpoint(endpoint);
    const doubt = withToken ? distrust(endpoint, token.knownTo) : null;
    if (doubt !== null) {
      looked.push(`  ${where}: ${doubt}`);
      continue;
    }
    const result = await call(endpoint, request, token.token);
    if (result.ok) return result;
    if (result.sent) return unanswered(where, result.reason, request);
    looked.push(`  ${where}: ${result.reason}`);
  }
  return unreachable(looked);
}

function unanswered(where: string, reason: string, { method = 'GET' }: Call): Failure {
  const lines = [
    `latchkey: the daemon at ${where} did not answer: ${reason}`,
    ...(method === 'GET' ? [] : ['Whether it did what was asked is not known.']),
  ];
  return { ok: false, code: exitCode.unreachable, lines };
}

function unreachable(looked: readonly string[]): Failure {
  const lines = [
    looked.length === 0
      ? 'latchkey: no daemon can be reached: both listeners are switched off'
      : 'latchkey: no daemon can be reached; looked at',
    ...looked,
    'Start one: latchkey serve. Or say where it is: --state-dir DIR or --config FILE.',
  ];
  return { ok: false, code: exitCode.unreachable, lines };
}
