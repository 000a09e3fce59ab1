import type { Principal } from '../../domain/principal.ts';
import type { Scope } from '../../domain/scope.ts';
import type { LicenseTrigger } from '../../domain/license.ts';
import type { Result } from '../../domain/problem.ts';
import type { LicenseAnswer } from '../../service/answers.ts';
import { licenseNotFound } from '../../service/access/license-access.ts';
import type { Lookups } from '../../service/ports.ts';
import { found, listHeaders, type Answer } from '../answer.ts';
import type { App } from '../app.ts';
import { accountFaults, withinReach } from '../entry/reach.ts';
import { route, type Route } from '../route.ts';
import { provenanceHeaders } from '../provenance.ts';
import {
  licenseList,
  licenseObject,
  licenseParameters,
  licenseQuery,
  presentLicense,
  presentSoldLicense,
} from '../wire/license.ts';
import { enveloped } from '../wire/envelope.ts';

const answers = { 200: enveloped(licenseObject) };

const verify = route({
  method: 'GET',
  path: '/api/v2/license/verify',
  summary: 'Verify a license key',
  access: { credential: 'product_secret', scope: 'verify' },
  query: licenseParameters,
  answers,
  async handle({ app, principal, query, signal }) {
    const { licenseKey } = query;
    if (licenseKey === null) return licenseNotFound();
    return present(
      await app.licensing.verify(principal.reach, licenseKey, signal, lookupsOf(app, principal)),
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
    async handle({ app, principal, body, writeOptions, waitMs, signal }) {
      if (body.licenseKey === null) return licenseNotFound();
      const { licenseKey } = body;
      const { reach } = principal;
      const lookups = lookupsOf(app, principal);
      const request = { reach, licenseKey, trigger, waitMs, lookups, ...writeOptions };
      return present(await app.licensing.change(request, signal));
    },
  });
}

/**
 * Limits how many keys that are not known here a credential can have looked up at an agent's upstream
 * (`limits.misses`): guessing must not spend the upstream's rate.
 */
function lookupsOf({ rates: { misses } }: App, { credential }: Principal): Lookups {
  return {
    credential,
    waitMs: () => misses.waitOf(credential),
    charge: () => misses.charge(credential),
    giveBack: (count) => misses.giveBack(credential, count),
  };
}

function present(result: Result<LicenseAnswer>): Result<Answer> {
  if (!result.ok) return result;
  const { license, provenance } = result.value;
  return found(presentLicense(license), provenanceHeaders(provenance));
}

const list = route({
  method: 'GET',
  path: '/admin/v1/licenses',
  summary: 'List licenses',
  access: { credential: 'any', scope: 'admin' },
  authorityOnly: true,
  query: licenseQuery,
  answers: { 200: enveloped(licenseList) },
  faults: (_, principal, __, { accountId }) => accountFaults(principal, accountId),
  async handle({ app: { reader }, principal, query, sentTo }) {
    const filter = { ...query, ...withinReach(principal, query.accountId) };
    const licenses = await reader.licenses.list(filter, query);
    const headers = listHeaders(await reader.licenses.count(filter), query, sentTo);
    return found({ licenses: licenses.map(presentSoldLicense) }, headers);
  },
});

/** Licenses: specification 4.4, and the list of an authority. */
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
  list,
];
