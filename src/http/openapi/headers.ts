import {
  provenanceHeaderNames as provenance,
  instanceHeader,
  requestIdHeader,
} from '../../domain/header-names.ts';
import type { Freshness } from '../../domain/agent/license-snapshot.ts';
import type { Route } from '../route.ts';

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
  'X-Total-Count': { description: 'The number of items on all pages together.', schema: count },
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
export function headersOf({ headers = [], query }: Route, status: number): Record<string, Reference> {
  const { shape = {} } = query?.schema ?? {};
  return references([
    ...everywhere,
    ...(headers.includes('provenance') ? [...Object.values(provenance), 'Age', 'Cache-Status'] : []),
    ...('offset' in shape ? page : []),
    ...(headers.includes('location') && status === 201 ? ['Location'] : []),
  ]);
}

/** The headers of error responses with a status. */
export function refusalHeaders(status: string): Record<string, Reference> {
  return references([
    ...everywhere,
    ...(status === '401' ? ['WWW-Authenticate'] : []),
    ...(['409', '429', '503', '4XX'].includes(status) ? ['Retry-After'] : []),
  ]);
}

function references(names: readonly string[]): Record<string, Reference> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
