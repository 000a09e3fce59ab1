import type { Scope } from '../domain/grant.ts';
import type { LicenseTrigger } from '../domain/license.ts';
import type { Result } from '../domain/problem.ts';
import type { LicenseAnswer } from '../service/licensing.ts';
import { licenseNotFound } from '../service/reach.ts';
import { found, type Answer } from './answer.ts';
import { route, type Route } from './route.ts';
import { standingHeaders } from './standing.ts';
import { licenseObject, licenseParameters, presentLicense } from './wire/license.ts';
import { enveloped } from './wire/envelope.ts';

const answers = { 200: enveloped(licenseObject) };

const verify = route({
  method: 'GET',
  path: '/api/v2/license/verify',
  summary: 'Verify a license key',
  access: { credential: 'product_secret', scope: 'verify' },
  query: licenseParameters,
  answers,
  async handle({ desk, grant, query, signal }) {
    if (query.licenseKey === null) return licenseNotFound();
    return present(await desk.licensing.verify(grant.reach, query.licenseKey, signal));
  },
});

function change(
  path: string,
  { trigger, scope, summary }: { trigger: Exclude<LicenseTrigger, 'refund'>; scope: Scope; summary: string },
): Route {
  return route({
    method: 'PUT',
    path,
    summary,
    access: { credential: 'product_secret', scope },
    body: licenseParameters,
    answers,
    async handle({ desk, grant, body, asked: { idempotency }, waitMs, signal }) {
      if (body.licenseKey === null) return licenseNotFound();
      const { licenseKey } = body;
      const request = { reach: grant.reach, licenseKey, trigger, idempotency, waitMs };
      return present(await desk.licensing.change(request, signal));
    },
  });
}

function present(result: Result<LicenseAnswer>): Result<Answer> {
  if (!result.ok) return result;
  const { license, standing } = result.value;
  return found(presentLicense(license), standingHeaders(standing));
}

/** Specification 4.4. */
export const licenseRoutes: readonly Route[] = [
  verify,
  change('/api/v2/license/disable', {
    trigger: 'disable',
    scope: 'manage',
    summary: 'Disable a license key',
  }),
  change('/api/v2/license/enable', { trigger: 'enable', scope: 'manage', summary: 'Enable a license key' }),
  change('/api/v2/license/usage', { trigger: 'usage', scope: 'use', summary: 'Count a use' }),
  change('/api/v2/license/decrease', { trigger: 'decrease', scope: 'use', summary: 'Take a use back' }),
];
