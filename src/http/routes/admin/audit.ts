import { withNext } from '../../../domain/page.ts';
import { failWith, notFound } from '../../../domain/problem/problem.ts';
import type { Awaitable, RecordedAuditEntry } from '../../../service/tables.ts';
import type { App } from '../../app.ts';
import { ok, pageOf } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import {
  actList,
  actObject,
  actQuery,
  serializeAuditEntry,
  type AuditEntryObject,
} from '../../../wire/audit.ts';
import { enveloped } from '../../../wire/response.ts';
import { parseLicenseKey } from '../../../domain/license.ts';
import { changeList, serializeChange } from '../../../wire/license.ts';
import { pageQuery } from '../../../wire/page.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const path = '/admin/v1/audit';

/** The record of people's acts (src/http/README.md, Audit log). */
export const auditRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path,
    operationId: 'listActs',
    tag: 'Audit',
    summary: 'List acts on record, the latest first',
    access,
    operatorOnly: true,
    query: actQuery,
    answers: { 200: enveloped(actList) },
    async handle({ app, query, sentTo }) {
      const { lists } = app;
      const rows = await lists.audit.list(query, withNext(query));
      const total = await lists.audit.count(query);
      const read = pageOf({ list: 'acts', rows, total, keyOf: ({ at, id }) => [at, id] }, query, sentTo);
      return ok({ acts: await Promise.all(read.items.map((act) => named(app, act))) }, read.headers);
    },
  }),
  route({
    method: 'GET',
    path: `${path}/:id`,
    operationId: 'getAct',
    tag: 'Audit',
    summary: 'Show an act on record',
    refusals: ['act_not_found'],
    access,
    operatorOnly: true,
    answers: { 200: enveloped(actObject) },
    async handle({ app, path: { id } }) {
      const act = /^\d{1,15}$/.test(id) ? await app.reader.audit.get(Number(id)) : null;
      if (act === null) return failWith('act_not_found', 'There is no act with this number on record.');
      return ok(await named(app, act));
    },
  }),
];

async function named(
  { reader, products, productName }: App,
  act: RecordedAuditEntry,
): Promise<AuditEntryObject> {
  const { subject } = act;
  const names: Readonly<Record<string, () => Awaitable<string | null | undefined>>> = {
    account: async () => (await reader.accounts.get(subject))?.name,
    product: () => productName(products?.idOf(subject) ?? subject),
    purchase: async () => {
      const purchase = await reader.purchases.get(subject);
      return purchase && (await reader.licenses.get(purchase.licenseKey))?.buyerEmail;
    },
    token: async () => (await reader.tokens.get(subject))?.label,
  };
  const [kind = ''] = act.act.split('.', 1);
  return serializeAuditEntry({ ...act, subjectName: (await names[kind]?.()) ?? undefined });
}

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
    // Older changes may not have been removed yet.
    const page = { ...withNext(query), since: app.historySince() };
    const history = await app.licenseService.history(tenant, licenseKey, page);
    if (!history.ok) return history;
    const { changes, total } = history.value;
    const rows = { list: 'changes', rows: changes, total } as const;
    const read = pageOf({ ...rows, keyOf: ({ number }) => [number] }, query, sentTo);
    return ok({ changes: read.items.map(serializeChange) }, read.headers);
  },
});

/** What happened to a license (src/http/README.md, License history). */
export const historyRoutes: readonly Route[] = [list];
