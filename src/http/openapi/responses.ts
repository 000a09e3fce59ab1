import { z } from 'zod';
import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import { failWith } from '../../domain/problem/problem.ts';
import { problems, type ProblemCode } from '../../domain/problem/problem-table.ts';
import type { RefusalForm } from '../dialects/dialect.ts';
import { specification } from '../dialects/specification.ts';
import type { Route } from '../route.ts';
import { headersOf, refusalHeaders } from './headers.ts';

/** Statuses that clients do not distinguish; they are documented as 4XX and 5XX. */
const ranges: Readonly<Record<string, string>> = {
  408: '4XX',
  413: '4XX',
  415: '4XX',
  431: '4XX',
  500: '5XX',
  508: '5XX',
};

/** All responses of a route: its own, and errors with their codes. */
export function responsesOf(route: Route, form: RefusalForm): ZodOpenApiResponsesObject {
  const codes = new Map<string, ProblemCode[]>();
  for (const code of new Set(refusalsOf(route))) {
    for (const status of statusesOf(code, form)) codes.set(status, [...(codes.get(status) ?? []), code]);
  }
  const refusals = [...codes].toSorted(([one], [other]) => one.localeCompare(other));
  return {
    ...Object.fromEntries(refusals.map(([status, its]) => [status, refused(status, its, form)])),
    ...Object.fromEntries(
      Object.entries(route.answers).map(([status, schema]) => [
        status,
        { ...answered(schema, Number(status)), headers: headersOf(route, Number(status)) },
      ]),
    ),
  };
}

/** The usual statuses with which an upstream refuses a coupon. */
const upstreamStatuses = [400, 409, 422];

function statusesOf(code: ProblemCode, form: RefusalForm): ReadonlySet<string> {
  const statusOf = (status?: number): string => {
    const own = form.present(failWith(code, '', status === undefined ? {} : { status }).problem, '').status;
    return ranges[own] ?? String(own);
  };
  if (code !== 'upstream_refused') return new Set([statusOf()]);
  // The status is that of the upstream, which can be any; statuses that are listed are not in the range.
  return new Set([...upstreamStatuses.map(statusOf), '4XX']);
}

function answered(schema: z.ZodType | null, status: number): ZodOpenApiResponseObject {
  const description = status < 300 ? 'Success.' : 'Refused; see `detail` and `errors`.';
  if (schema === null) return { description };
  return { description, content: { [mediaType(schema)]: { schema } } };
}

function mediaType(schema: z.ZodType): string {
  const { contentMediaType } = schema.meta() ?? {};
  if (typeof contentMediaType === 'string') return contentMediaType;
  if (schema instanceof z.ZodString) return 'text/plain';
  return schema instanceof z.ZodFile ? 'application/octet-stream' : 'application/json';
}

/** Errors that are the same for all routes, by the names of their components. */
const shared: Readonly<Record<string, string>> = {
  401: 'Unauthorized',
  429: 'TooManyRequests',
  '5XX': 'Failed',
};
const components = new Map<string, ZodOpenApiResponseObject>();

function refused(status: string, codes: readonly ProblemCode[], form: RefusalForm): ZodOpenApiResponseObject {
  const name = shared[status];
  if (name === undefined) return describeRefusal(status, codes, form);
  const id = form === specification.refusal ? name : `${name}AsStore`;
  // zod-openapi requires the same object for each use of a component.
  const component = components.get(id) ?? { id, ...describeRefusal(status, codes, form) };
  components.set(id, component);
  return component;
}

function describeRefusal(
  status: string,
  codes: readonly ProblemCode[],
  { mediaType: type, schema }: RefusalForm,
): ZodOpenApiResponseObject {
  return {
    description: codes.map((code) => `- \`${code}\`: ${problems[code].title}.`).join('\n'),
    headers: refusalHeaders(status),
    content: { [type]: { schema } },
  };
}

/** Problems of any request, before its route runs. */
const requestProblems: readonly ProblemCode[] = [
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

const credentialProblems: readonly ProblemCode[] = [
  'credentials_missing',
  'credentials_invalid',
  'token_expired',
  'scope_missing',
  'rate_limited',
];

const writeProblems: readonly ProblemCode[] = [
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
    ...requestProblems,
    ...(isAnyones ? [] : credentialProblems),
    ...(route.operatorOnly === true ? (['operator_only'] as const) : []),
    ...(route.authorityOnly === true ? (['not_the_authority'] as const) : []),
    ...(route.always === true ? [] : (['starting', 'draining'] as const)),
    ...(isAnyones ? [] : (['storage_failed', 'storage_unavailable'] as const)),
    ...((query ?? body) ? (['parameters_invalid'] as const) : []),
    ...(owned === undefined ? [] : ([`${owned}_not_found`] as const)),
    ...(route.method === 'GET' ? [] : writeProblems),
    ...(keepsResponses(route) ? (['idempotency_key_reused'] as const) : []),
    ...upstreamProblems(route),
    ...(route.refusals ?? []),
  ];
}

/** Whether the response is stored under the idempotency key. Responses with secrets and of reads are not stored. */
export function keepsResponses({ method, answersSecret, readsOnly }: Route): boolean {
  return method !== 'GET' && answersSecret !== true && readsOnly !== true;
}

/** Problems of an agent whose upstream is unavailable. */
function upstreamProblems({ headers = [], isVerdict, access }: Route): readonly ProblemCode[] {
  if (!headers.includes('provenance')) return [];
  if (isVerdict === true) return ['license_not_found', 'upstream_unreachable', 'verdict_expired'];
  return access === 'anyone' ? [] : ['upstream_unreachable', 'coupons_not_configured'];
}
