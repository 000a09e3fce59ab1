import type { Grant, Reach, Scope } from '../../domain/grant.ts';
import type { LicenseTrigger } from '../../domain/license.ts';
import type { Result } from '../../domain/problem.ts';
import type { LicenseAnswer } from '../../service/answers.ts';
import { licenseNotFound } from '../../service/access/reach.ts';
import type { Reader } from '../../service/tables.ts';
import { found, type Answer } from '../answer.ts';
import type { Desk } from '../server-context.ts';
import { rateLimited } from '../entry/rates.ts';
import { route, type Route } from '../route.ts';
import { standingHeaders } from '../provenance.ts';
import { licenseObject, licenseParameters, presentLicense } from '../wire/license.ts';
import { enveloped } from '../wire/envelope.ts';

const answers = { 200: enveloped(licenseObject) };

const verify = route({
  method: 'GET',
  path: '/api/v2/license/verify',
  summary: 'Verify a license key',
  access: { credential: 'product_secret', scope: 'verify' },
  query: licenseParameters,
  answers,
  async handle({ desk, grant, query, signal }) {
    const { licenseKey } = query;
    if (licenseKey === null) return licenseNotFound();
    return await withoutGuessing({ desk, grant, licenseKey }, () =>
      desk.licensing.verify(grant.reach, licenseKey, signal),
    );
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
      return await withoutGuessing({ desk, grant, licenseKey }, () => desk.licensing.change(request, signal));
    },
  });
}

type Question = { desk: Desk; grant: Grant; licenseKey: string };

/**
 * Lets a credential ask an agent for keys that are not known here only as long as few of them turn out
 * unknown (`limits.misses`): guessing must not spend the upstream's rate, and a new key is no guess.
 */
async function withoutGuessing(
  { desk, grant, licenseKey }: Question,
  ask: () => Promise<Result<LicenseAnswer>>,
): Promise<Result<Answer>> {
  if (desk.role === 'authority') return present(await ask());
  const { misses } = desk.rates;
  const waitMs = misses.waitOf(grant.credential);
  if (waitMs > 0 && !isKnown(desk.reader, grant.reach, licenseKey)) {
    throw rateLimited('This credential asks for too many unknown keys.', waitMs);
  }
  const result = await ask();
  if (!result.ok && result.problem.code === 'license_not_found') misses.charge(grant.credential);
  return present(result);
}

/** A key of another product is as unknown as any, or the answer would tell them apart. */
function isKnown({ observations }: Reader, { productKey }: Reach, licenseKey: string): boolean {
  const observation = observations.get(licenseKey);
  return observation !== null && (productKey === null || observation.productKey === productKey);
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
