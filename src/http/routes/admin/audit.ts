import { withNext } from '../../../domain/page.ts';
import { failWith } from '../../../domain/problem/problem.ts';
import { ok, pageOf } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { actList, actObject, actQuery, serializeAuditEntry } from '../../../wire/audit.ts';
import { enveloped } from '../../../wire/response.ts';

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
    async handle({ app: { lists }, query, sentTo }) {
      const rows = await lists.audit.list(query, withNext(query));
      const total = await lists.audit.count(query);
      const read = pageOf({ list: 'acts', rows, total, keyOf: ({ at, id }) => [at, id] }, query, sentTo);
      return ok({ acts: read.items.map(serializeAuditEntry) }, read.headers);
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
    async handle({ app: { reader }, path: { id } }) {
      const act = /^\d{1,15}$/.test(id) ? await reader.audit.get(Number(id)) : null;
      if (act === null) return failWith('act_not_found', 'There is no act with this number on record.');
      return ok(serializeAuditEntry(act));
    },
  }),
];
