import type { ProblemCode } from '../../domain/problem/problem-table.ts';
import type { Route } from '../route.ts';

/** Problems of any request, before its route runs. */
const ofGate: readonly ProblemCode[] = [
  'malformed_request',
  'duplicate_parameter',
  'origin_forbidden',
  'host_forbidden',
  'headers_too_large',
  'request_timeout',
  'unsupported_media_type',
  'loop_detected',
  'internal_error',
];

const ofCredential: readonly ProblemCode[] = [
  'credentials_missing',
  'credentials_invalid',
  'token_expired',
  'scope_missing',
  'rate_limited',
];

const ofWrite: readonly ProblemCode[] = [
  'malformed_body',
  'body_too_large',
  'idempotency_key_malformed',
  'idempotency_key_in_use',
  'storage_full',
  'outcome_unknown',
];

/** Every code that a route may refuse with. */
export function refusalsOf(route: Route): readonly ProblemCode[] {
  const { access, owned, query, body } = route;
  const isAnyones = access === 'anyone';
  return [
    ...ofGate,
    ...(isAnyones ? [] : ofCredential),
    ...(route.operatorOnly === true ? (['operator_only'] as const) : []),
    ...(route.authorityOnly === true ? (['not_the_authority'] as const) : []),
    ...(route.always === true ? [] : (['starting', 'draining'] as const)),
    ...(isAnyones ? [] : (['storage_failed', 'storage_unavailable'] as const)),
    ...((query ?? body) ? (['parameters_invalid'] as const) : []),
    ...(owned === undefined ? [] : ([`${owned}_not_found`] as const)),
    ...(route.method === 'GET' ? [] : ofWrite),
    ...(keepsResponses(route) ? (['idempotency_key_reused'] as const) : []),
    ...ofUpstream(route),
    ...(route.refusals ?? []),
  ];
}

/** Whether the response is stored under the idempotency key: not if it contains a secret, or nothing was changed. */
export function keepsResponses({ method, answersSecret, readsOnly }: Route): boolean {
  return method !== 'GET' && answersSecret !== true && readsOnly !== true;
}

/** Problems of an agent that does not know enough while its upstream is away. */
function ofUpstream({ headers = [], isVerdict, access }: Route): readonly ProblemCode[] {
  if (!headers.includes('provenance')) return [];
  if (isVerdict === true) return ['license_not_found', 'upstream_unreachable', 'verdict_expired'];
  return access === 'anyone' ? [] : ['upstream_unreachable', 'coupons_not_configured'];
}
