import type { Principal, Tenant } from '../domain/access/principal.ts';
import { parseLicenseKey, type License } from '../domain/license.ts';
import { notFound, type Result } from '../domain/problem/problem.ts';
import { storedLicenseKey } from '../service/pasted-keys.ts';
import { serializeLicense } from '../wire/license.ts';
import type { App } from './app.ts';
import { ok, type RouteResponse } from './response.ts';
import { tenantForLicense } from './tenant.ts';

/** Changes the license that a path names as a seller, under the spelling that is stored. */
export async function changeSoldLicense(
  { app, principal, path }: { app: App; principal: Principal; path: { key: string } },
  change: (license: { tenant: Tenant; licenseKey: string }) => Promise<Result<License>>,
): Promise<Result<RouteResponse>> {
  const sent = parseLicenseKey(path.key);
  if (sent === null) return notFound('license');
  const licenseKey = await storedLicenseKey(app.reader, sent);
  const tenant = await tenantForLicense(app, principal, licenseKey);
  const changed = await change({ tenant, licenseKey });
  return changed.ok ? ok(serializeLicense(changed.value)) : changed;
}
