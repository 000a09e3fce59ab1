import { z } from 'zod';
import type { Result } from '../../../domain/problem/problem.ts';
import { keysObject, maxDocumentBytes, signedAnswerObject } from '../wire/lease.ts';
import { parameters } from '../../../wire/parameters.ts';
import { enveloped } from '../../../wire/response.ts';
import type { SignedAnswer } from '../service/ports.ts';
import { noContent, ok, type RouteResponse } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';

/** The roles that issue leases. */
export const ofIssuer = {
  tag: 'Leases',
  roles: ['authority', 'agent'],
  elsewhere: { code: 'not_an_issuer', detail: 'A holder has leases for its own device only.' },
} as const;

/** Why a request for a lease is refused. */
export const leaseRefusals = [
  'lease_request_invalid',
  'license_not_found',
  'no_seat_left',
  'no_move_left',
  'out_of_sequence',
  'activation_blocked',
  'leases_not_set_up',
  'clock_suspect',
  'storage_failed',
  'storage_unavailable',
  'upstream_unreachable',
  'verdict_expired',
] as const;

const ask = route({
  ...ofIssuer,
  method: 'POST',
  path: '/lease/v1',
  operationId: 'askForLease',
  summary: 'Take or give back the seat of a device, or renew its lease; the body is signed by the device',
  access: 'anyone',
  isPublic: true,
  takesDocument: true,
  bodyBytes: maxDocumentBytes,
  // Devices repeat renewals so often that a log line for each would hide all others.
  readsOnly: true,
  refusals: [...leaseRefusals, 'rate_limited'],
  // An empty body is a document that cannot be read.
  body: parameters({ document: z.string().default('') }),
  answers: { 200: enveloped(signedAnswerObject), 204: null },
  // Not an async function, which would keep the document while the request waits.
  handle: ({ app, body: { document }, waitMs, signal, clientAddress }) =>
    app.leaseIssuer.answer(document, { waitMs, signal, clientAddress }).then(present),
});

function present(answered: Result<SignedAnswer | null>): Result<RouteResponse> {
  if (!answered.ok) return answered;
  return answered.value === null ? noContent() : ok(answered.value);
}

const keys = route({
  ...ofIssuer,
  method: 'GET',
  path: '/lease/v1/keys',
  operationId: 'getSigningKeys',
  summary: 'The keys that sign leases, in a statement that a root key of the vendor has signed',
  access: 'anyone',
  isPublic: true,
  refusals: ['leases_not_set_up'],
  answers: { 200: enveloped(keysObject) },
  async handle({ app }) {
    const statement = await app.leaseIssuer.statement();
    return statement.ok ? ok({ keys: statement.value }) : statement;
  },
});

/** What the holders on the machines of customers ask for (src/http/README.md, Leases). */
export const leaseRoutes: readonly Route[] = [ask, keys];
