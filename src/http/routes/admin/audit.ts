import { refuse } from '../../../domain/problem/problem.ts';
import { found, listHeaders } from '../../answer.ts';
import { route, type Route } from '../../route.ts';
import { actList, actObject, actQuery, presentAct } from '../../wire/audit.ts';
import { enveloped } from '../../wire/common/envelope.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const path = '/admin/v1/audit';

/** The record of people's acts (src/http/README.md, The record of acts). */
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
      const acts = await lists.audit.list(query, query);
      const headers = listHeaders(await lists.audit.count(query), query, sentTo);
      return found({ acts: acts.map(presentAct) }, headers);
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
      if (act === null) return refuse('act_not_found', 'There is no act with this number on record.');
      return found(presentAct(act));
    },
  }),
];
