import { withNext, type Page } from '../../../domain/page.ts';
import type { Search } from '../../../domain/search.ts';
import type { Decision } from '../../../domain/outbox/explanation.ts';
import type { Operation, OperationState } from '../../../domain/outbox/operation.ts';
import { licenseKeysIn } from '../../../domain/license.ts';
import { failWith } from '../../../domain/problem/problem.ts';
import type { OperationLists } from '../../../service/tables.ts';
import type { OperationReads } from '../../../service/outbox/tables.ts';
import { afterCommit } from '../../../service/writer.ts';
import { ok, emptyList, pageOf, responseUnreadable } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { inStoredSpelling, lengthOf, searchFor } from '../../search.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  operationList,
  operationQuery,
  serializeOperation,
  serializeExplanation,
  explainedOperation,
  type ExplainedOperation,
} from '../../../wire/operation.ts';
import type { App } from '../../app.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const path = '/admin/v1/outbox';
const finishedStates: readonly OperationState[] = ['delivered', 'inferred', 'cancelled', 'dropped'];

const list = route({
  method: 'GET',
  path,
  operationId: 'listOperations',
  tag: 'Outbox',
  summary: 'List operations of the outbox: all that is not finished, or those of a state or a license key',
  access,
  operatorOnly: true,
  query: operationQuery,
  answers: { 200: enveloped(operationList) },
  async handle({ app, query, searchedKeys, sentTo }) {
    const { operations, products } = app;
    if (operations === null) return emptyList('operations');
    const { state = null, explain } = query;
    const licenseKey =
      query.licenseKey === undefined ? undefined : await spellingIn(operations, query.licenseKey);
    const filter = searchFor(query, searchedKeys);
    const { total, rows } =
      licenseKey === undefined && filter.search !== undefined
        ? await found(operations, { search: filter.search, state }, withNext(query))
        : await listed(operations, { licenseKey, state }, withNext(query));
    const read = pageOf({ list: 'operations', rows, total, keyOf: ({ seq }) => [seq] }, query, sentTo);
    const items = read.items.map((each) =>
      explain ? serializeExplained(app, each) : serializeOperation(each, products),
    );
    return ok({ operations: items }, read.headers);
  },
});

type Read = { total: number | null; rows: readonly Operation[] };
type Operations = Pick<OperationReads, 'depth'> & OperationLists;

async function listed(
  operations: Operations,
  { licenseKey, state }: { licenseKey: string | undefined; state: OperationState | null },
  page: Page,
): Promise<Read> {
  if (licenseKey === undefined)
    return { total: countOperations(operations, state), rows: await operations.list(state, page) };
  const total = await operations.countOpenOf(licenseKey, state);
  return { total, rows: await operations.openOf(licenseKey, state, page) };
}

async function found(
  operations: Operations,
  sent: { search: Search; state: OperationState | null },
  page: Page,
): Promise<Read> {
  const { filter, total } = await inStoredSpelling(sent, ({ search, state }) =>
    operations.countFound(search, state),
  );
  const rows = await operations.found(filter.search, filter.state, page);
  return { total: lengthOf(filter, total), rows };
}

/** The spelling of a key that has operations: as sent, or else as it was before it was pasted. */
async function spellingIn(
  operations: Pick<OperationLists, 'countOpenOf'>,
  licenseKey: string,
): Promise<string> {
  const spellings = licenseKeysIn(licenseKey);
  if (spellings.length <= 1) return licenseKey;
  for (const spelling of spellings) if ((await operations.countOpenOf(spelling, null)) > 0) return spelling;
  return spellings[1] ?? licenseKey;
}

function countOperations(operations: Pick<OperationReads, 'depth'>, state: OperationState | null): number {
  const depth = operations.depth();
  if (state !== null) return depth[state];
  const all = Object.values(depth).reduce((sum, count) => sum + count, 0);
  return finishedStates.reduce((rest, finished) => rest - depth[finished], all);
}

const show = route({
  method: 'GET',
  path: `${path}/:id`,
  operationId: 'getOperation',
  tag: 'Outbox',
  summary: 'Show an operation of the outbox',
  refusals: ['operation_not_found'],
  access,
  operatorOnly: true,
  answers: { 200: enveloped(explainedOperation) },
  handle({ app, path: { id } }) {
    const operation = app.operations?.get(id);
    if (operation === undefined || operation === null) return notFound();
    return ok(serializeExplained(app, operation));
  },
});

function notFound(): ReturnType<typeof failWith> {
  return failWith('operation_not_found', 'There is no operation with this id.');
}

/** An operation with its explanation. */
export function serializeExplained(app: App, operation: Operation): ExplainedOperation {
  const explanation = serializeExplanation(app.explain(operation), app.now());
  return { ...serializeOperation(operation, app.products), explanation };
}

function decisionRoute(decision: Decision, operationId: string, summary: string): Route {
  return route({
    method: 'POST',
    path: `${path}/:id/${decision}`,
    operationId,
    tag: 'Outbox',
    summary,
    refusals: ['operation_not_found', 'operation_not_open'],
    access,
    operatorOnly: true,
    answers: { 200: enveloped(explainedOperation) },
    async handle({ app, path: { id }, writeOptions }) {
      if (app.operations === null) return notFound();
      const decided = await app.writer.write('decideOperation', { operationId: id, decision }, writeOptions);
      if (!decided.ok) return decided;
      app.sync?.wake();
      const response = await afterCommit(
        app.log,
        () => serializeExplained(app, decided.value.operation),
        null,
      );
      return response === null ? responseUnreadable() : ok(response);
    },
  });
}

/** The outbox, and the decisions of a person about it (src/http/README.md, Admin routes). */
export const outboxRoutes: readonly Route[] = [
  list,
  show,
  decisionRoute('retry', 'retryOperation', 'Send an operation again'),
  decisionRoute('drop', 'dropOperation', 'Give an operation up'),
  decisionRoute('confirm', 'confirmOperation', 'Say that an operation was applied'),
];
