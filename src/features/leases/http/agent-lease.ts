import { failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { parseLicenseKey } from '../../../domain/license.ts';
import type { HeldLeaseStatus, LeaseHolder } from '../service/ports.ts';
import {
  activateParameters,
  heldLeaseList,
  heldLeaseObject,
  installParameters,
  leaseQuery,
  leaseRequestObject,
  leaseRequestParameters,
  programAnswerObject,
  serializeHeldLease,
} from '../wire/held-lease.ts';
import { enveloped } from '../../../wire/response.ts';
import { ok, type RouteResponse } from '../../../http/response.ts';
import type { AppIn } from '../../../http/app.ts';
import { route, type Route } from '../../../http/route.ts';

const shared = { tag: 'Leases', roles: ['holder'] } as const;
const verifies = { credential: 'product_secret', scope: 'verify' } as const;
const uses = { credential: 'product_secret', scope: 'use' } as const;

const noSeat = [
  'license_not_found',
  'no_seat_left',
  'no_move_left',
  'activation_blocked',
  'lease_request_invalid',
  'upstream_unreachable',
] as const;

const show = route({
  ...shared,
  method: 'GET',
  path: '/agent/v1/lease',
  operationId: 'getLease',
  summary: 'The lease of a license key on this device; with a nonce also a proof, or a newer lease',
  refusals: [...noSeat, 'lease_not_found', 'license_expired', 'verdict_expired'],
  access: verifies,
  prefersNewLease: true,
  query: leaseQuery,
  answers: { 200: enveloped(programAnswerObject) },
  handle: ({ app, query, principal, waitMs, signal }) =>
    withKey(app, query.licenseKey, async (holder, licenseKey) => {
      const { nonce = null } = query;
      const productKey = principal.tenant.productKey ?? query.productKey ?? null;
      const shown = await holder.show({ licenseKey, productKey, nonce, waitMs }, signal);
      if (!shown.ok) return shown;
      const { proof, ...documents } = shown.value;
      return ok({ ...documents, ...(proof !== null && { proof }) });
    }),
});

const activate = route({
  ...shared,
  method: 'POST',
  path: '/agent/v1/activations',
  operationId: 'activateLicense',
  summary: 'Take a seat of a license key for this device, or take over the seat of another device',
  refusals: [...noSeat, 'lease_not_found'],
  access: uses,
  repeats: true,
  body: activateParameters,
  answers: { 200: enveloped(heldLeaseObject) },
  handle: ({ app, body, principal, signal }) =>
    withKey(app, body.licenseKey, async (holder, licenseKey) => {
      const productKey = principal.tenant.productKey ?? body.productKey ?? null;
      return present(
        await holder.activate({ licenseKey, productKey, replaces: body.replaces ?? null }, signal),
      );
    }),
});

const deactivate = route({
  ...shared,
  method: 'DELETE',
  path: '/agent/v1/activations/:key',
  operationId: 'deactivateLicense',
  summary: 'Give the seat of this device back, now or as soon as the issuer answers',
  refusals: [...noSeat, 'lease_not_found'],
  access: uses,
  repeats: true,
  answers: { 200: enveloped(heldLeaseObject) },
  handle: ({ app, path: { key }, signal }) =>
    withKey(app, parseLicenseKey(key), async (holder, licenseKey) =>
      present(await holder.deactivate(licenseKey, signal)),
    ),
});

const list = route({
  ...shared,
  method: 'GET',
  path: '/agent/v1/activations',
  operationId: 'listHeldLeases',
  summary: 'List the leases of this device',
  access: { credential: 'any', scope: 'ops' },
  answers: { 200: enveloped(heldLeaseList) },
  handle({ app: { leaseHolder } }) {
    return ok({ activations: leaseHolder.list().map(serializeHeldLease) });
  },
});

const request = route({
  ...shared,
  method: 'POST',
  path: '/agent/v1/lease/request',
  operationId: 'makeLeaseRequest',
  summary: 'Sign a request for a lease, to be taken to the vendor as a file',
  refusals: ['lease_not_found', 'lease_request_unanswered', 'license_not_found', 'rate_limited'],
  access: uses,
  repeats: true,
  body: leaseRequestParameters,
  answers: { 200: enveloped(leaseRequestObject) },
  handle: ({ app, body, principal }) =>
    withKey(app, body.licenseKey, async (holder, licenseKey) => {
      const { end = false, replaces = null, refused: isRefused = false } = body;
      const productKey = principal.tenant.productKey ?? body.productKey ?? null;
      const signed = await holder.requestFile({
        licenseKey,
        productKey,
        act: end ? 'end' : 'take',
        replaces,
        isRefused,
      });
      return signed.ok ? ok({ request: signed.value }) : signed;
    }),
});

const install = route({
  ...shared,
  method: 'PUT',
  path: '/agent/v1/lease',
  operationId: 'installLease',
  summary: 'Take over the answer of the vendor to a request that was taken there as a file',
  refusals: ['lease_not_found', 'lease_invalid'],
  access: uses,
  repeats: true,
  bodyBytes: 416 * 1024,
  body: installParameters,
  answers: { 200: enveloped(heldLeaseObject) },
  async handle({ app: { leaseHolder }, body: { lease, notice, sequence, keys } }) {
    if (lease !== undefined) return present(await leaseHolder.install({ lease, keys }));
    if (notice !== undefined) return present(await leaseHolder.install({ notice, keys }));
    if (sequence !== undefined) return present(await leaseHolder.install({ sequence, keys }));
    return failWith('lease_invalid', 'The answer has no lease, no notice and no sequence.');
  },
});

async function withKey(
  { leaseHolder }: AppIn<'holder'>,
  licenseKey: string | null,
  act: (holder: LeaseHolder, licenseKey: string) => Promise<Result<RouteResponse>>,
): Promise<Result<RouteResponse>> {
  return licenseKey === null ? notFound('license') : await act(leaseHolder, licenseKey);
}

function present(held: Result<HeldLeaseStatus>): Result<RouteResponse> {
  return held.ok ? ok(serializeHeldLease(held.value)) : held;
}

/** What programs and people ask the holder on their machine for (src/http/README.md, Leases). */
export const agentLeaseRoutes: readonly Route[] = [show, install, request, list, activate, deactivate];
