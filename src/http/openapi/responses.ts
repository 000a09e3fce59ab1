import { z } from 'zod';
import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi';
import { failWith } from '../../domain/problem/problem.ts';
import { problems, type ProblemCode } from '../../domain/problem/problem-table.ts';
import { type RefusalForm, specification } from '../dialects.ts';
import { refusalsElsewhere } from '../entry/admission.ts';
import { sessionsOf, type Route } from '../route.ts';
import {
  provenanceHeaderNames as provenance,
  instanceHeader,
  requestIdHeader,
  leftOutHeader,
} from '../../domain/header-names.ts';
import type { Freshness } from '../../domain/agent/license-snapshot.ts';

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
        { ...describeSuccess(schema, Number(status)), headers: headersOf(route, Number(status)) },
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

function describeSuccess(schema: z.ZodType | null, status: number): ZodOpenApiResponseObject {
  const description = descriptionOf(status);
  if (schema === null) return { description };
  return { description, content: { [mediaType(schema)]: { schema } } };
}

function descriptionOf(status: number): string {
  if (status < 300) return 'Success.';
  return status === 304 ? 'Nothing has changed.' : 'Refused; see `detail` and `errors`.';
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
    ...(isAnyones || sessionsOf(route) === 'all' ? [] : (['session_read_only'] as const)),
    ...(route.operatorOnly === true ? (['operator_only'] as const) : []),
    ...refusalsElsewhere(route),
    ...(!isAnyones && access.credential === 'api_key'
      ? (['not_offered_by_holder', 'not_offered_by_store'] as const)
      : []),
    ...(route.always === true ? [] : (['starting', 'draining'] as const)),
    ...(isAnyones ? [] : (['storage_failed', 'storage_unavailable'] as const)),
    ...((query ?? body) ? (['parameters_invalid'] as const) : []),
    ...(owned === undefined ? [] : ([`${owned}_not_found`] as const)),
    ...(route.method === 'GET' ? [] : writeProblems),
    ...(keepsResponses(route) ? (['idempotency_key_reused'] as const) : []),
    ...(route.takesOperations === true ? (['other_store', 'too_old_to_know'] as const) : []),
    ...upstreamProblems(route),
    ...(route.refusals ?? []),
  ];
}

/** Whether the response is stored under the idempotency key. Responses with secrets and of reads are not stored. */
export function keepsResponses({ method, answersSecret, readsOnly, repeats }: Route): boolean {
  return method !== 'GET' && answersSecret !== true && readsOnly !== true && repeats !== true;
}

/** The last four come from a holder. */
const verdictProblems = [
  'license_not_found',
  'upstream_unreachable',
  'verdict_expired',
  'lease_not_found',
  'no_seat_left',
  'activation_blocked',
  'lease_request_invalid',
] as const;

/** Problems of an agent whose upstream is unavailable. */
function upstreamProblems({ headers = [], isVerdict, access }: Route): readonly ProblemCode[] {
  if (!headers.includes('provenance')) return [];
  if (isVerdict === true) return [...verdictProblems];
  return access === 'anyone' ? [] : ['upstream_unreachable', 'coupons_not_configured'];
}

type Header = { description: string; schema: Readonly<Record<string, unknown>> };
type Reference = { $ref: string };

const freshness: Record<Freshness, true> = {
  authoritative: true,
  fresh: true,
  stale: true,
  grace: true,
  expired: true,
  provisional: true,
};
const instant = { type: 'string', format: 'date-time' };
const count = { type: 'integer', minimum: 0 };

/** The headers of responses, by name (src/http/README.md, Agent headers). */
export const responseHeaders: Readonly<Record<string, Header>> = {
  [instanceHeader]: {
    description: 'The id of the store that sent the response.',
    schema: { type: 'string', format: 'uuid' },
  },
  [requestIdHeader]: {
    description: 'The id of the request in the log: the id that the caller sent, or a new one.',
    schema: { type: 'string', minLength: 1, maxLength: 128 },
  },
  [provenance.freshness]: {
    description:
      'How fresh the response is: `authoritative` comes from the authority, all others from an agent.',
    schema: { type: 'string', enum: Object.keys(freshness) },
  },
  [provenance.confirmedAt]: {
    description: 'When the upstream last confirmed this; absent on an authority, and if it never did.',
    schema: instant,
  },
  [provenance.graceUntil]: {
    description: 'Until when an agent sends this response without its upstream.',
    schema: instant,
  },
  [provenance.pending]: {
    description: 'How many changes the upstream has not confirmed yet.',
    schema: count,
  },
  Age: { description: 'Seconds since the confirmation (RFC 9111).', schema: count },
  'Cache-Status': {
    description: 'Whether the response comes from the cache or the upstream was asked (RFC 9211).',
    schema: { type: 'string', enum: ['latchkey; hit', 'latchkey; fwd=miss'] },
  },
  ETag: {
    description: 'Changes with the body. Send it as `If-None-Match` to get 304 while nothing has changed.',
    schema: { type: 'string' },
  },
  [leftOutHeader]: {
    description: 'How many coupons of the upstream cannot be read and are not in the list.',
    schema: count,
  },
  'X-Total-Count': {
    description:
      'The number of items on all pages together. Absent if a search has found more than it counts.',
    schema: count,
  },
  Link: {
    description: 'The next page, if there is one (RFC 8288).',
    schema: { type: 'string', pattern: '^<[^>]*>; rel="next"$' },
  },
  Location: {
    description: 'The path of the created resource.',
    schema: { type: 'string', format: 'uri-reference' },
  },
  'Retry-After': { description: 'After how many seconds to try again.', schema: count },
  'WWW-Authenticate': {
    description: 'How to send a credential (RFC 6750).',
    schema: { type: 'string', pattern: '^Bearer ' },
  },
};

const everywhere = [instanceHeader, requestIdHeader];
const page = ['X-Total-Count', 'Link'];

/** The headers of the successful responses of a route. */
function headersOf({ headers = [], query }: Route, status: number): Record<string, Reference> {
  const { shape = {} } = query?.schema ?? {};
  return references([
    ...everywhere,
    ...(headers.includes('provenance') ? [...Object.values(provenance), 'Age', 'Cache-Status'] : []),
    ...(headers.includes('left_out') ? [leftOutHeader] : []),
    ...('offset' in shape ? page : []),
    ...(headers.includes('location') && status === 201 ? ['Location'] : []),
    ...(headers.includes('etag') ? ['ETag'] : []),
  ]);
}

/** The headers of error responses with a status. */
function refusalHeaders(status: string): Record<string, Reference> {
  return references([
    ...everywhere,
    ...(status === '401' ? ['WWW-Authenticate'] : []),
    ...(['409', '429', '503', '4XX'].includes(status) ? ['Retry-After'] : []),
  ]);
}

function references(names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
