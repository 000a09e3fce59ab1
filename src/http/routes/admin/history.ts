import { notFound } from '../../../domain/problem/problem.ts';
import { withNext } from '../../../domain/page.ts';
import { parseLicenseKey } from '../../../domain/license.ts';
import { ok, pageOf } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import { changeList, serializeChange } from '../../../wire/license.ts';
import { pageQuery } from '../../../wire/page.ts';

const list = route({
  method: 'GET',
  path: '/admin/v1/licenses/:key/history',
  operationId: 'listLicenseHistory',
  tag: 'Licenses',
  summary: 'List what has changed a license, the latest first',
  refusals: ['license_not_found'],
  access: { credential: 'any', scope: 'admin' },
  query: pageQuery('changes'),
  answers: { 200: enveloped(changeList) },
  async handle({ app, principal, path: { key }, query, sentTo }) {
    const licenseKey = parseLicenseKey(key);
    if (licenseKey === null) return notFound('license');
    const tenant = principal.isOperator ? null : principal.tenant;
    // What is older may not have been removed yet.
    const kept = { ...withNext(query), since: app.historySince() };
    const history = await app.licenseService.history(tenant, licenseKey, kept);
    if (!history.ok) return history;
    const { changes, total } = history.value;
    const rows = { list: 'changes', rows: changes, total } as const;
    const read = pageOf({ ...rows, keyOf: ({ number }) => [number] }, query, sentTo);
    return ok({ changes: read.items.map(serializeChange) }, read.headers);
  },
});

/** What happened to a license (src/http/README.md, License history). */
export const historyRoutes: readonly Route[] = [list];
