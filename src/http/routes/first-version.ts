import type { Principal, Reach } from '../../domain/principal.ts';
import type { App } from '../app.ts';
import type { LicenseForm } from '../dialects/dialect.ts';
import { route, type Route } from '../route.ts';
import { enveloped } from '../wire/envelope.ts';
import { firstVersionParameters } from '../wire/license.ts';
import { changeLicense, licenseChanges, verifyLicense, type Asked } from './license.ts';

/** What a caller of the first version names: a product, and a license key of it. */
type Named = { productLink: string; licenseKey: string | null };

/**
 * Whose license key is meant, for a credential that reaches further than one product. An unknown product is
 * answered like an unknown key, so that nobody can tell which exist.
 */
async function askedOf(
  { app, principal }: { app: App; principal: Principal },
  { productLink, licenseKey }: Named,
): Promise<Asked> {
  const reach: Reach = { ...principal.reach, productKey: productLink };
  return { reach, licenseKey: (await isReachable(app, principal.reach, productLink)) ? licenseKey : null };
}

async function isReachable(app: App, reach: Reach, productKey: string): Promise<boolean> {
  if (reach.productKey !== null && reach.productKey !== productKey) return false;
  const configured = app.configuredProducts();
  if (configured !== null) return configured.includes(productKey);
  return (await app.reader.products.get(productKey))?.accountId === reach.accountId;
}

/** The first version of the license operations: the API key is the credential, and the caller names the product. */
export function firstVersionRoutes(form: LicenseForm): readonly Route[] {
  const answers = { 200: enveloped(form.schema) };
  const verify = route({
    method: 'GET',
    path: '/api/v1/license/verify',
    summary: 'Verify a license key of a product',
    access: { credential: 'api_key', scope: 'verify' },
    isVerdict: true,
    query: firstVersionParameters,
    answers,
    handle: async (request) => verifyLicense(request, await askedOf(request, request.query), form),
  });
  const changes = licenseChanges.map(({ trigger, scope, summary }) =>
    route({
      method: 'PUT',
      path: `/api/v1/license/${trigger}`,
      summary: `${summary} of a product`,
      access: { credential: 'api_key', scope },
      isVerdict: true,
      body: firstVersionParameters,
      isBodyInQuery: true,
      answers,
      handle: async (request) =>
        changeLicense(request, { ...(await askedOf(request, request.body)), trigger }, form),
    }),
  );
  return [verify, ...changes];
}
