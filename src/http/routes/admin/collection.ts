import { withNext } from '../../../domain/page.ts';
import { notFound } from '../../../domain/problem/problem.ts';
import { ok, created, pageOf } from '../../response.ts';
import { foreignAccountFaults, tenantFilter } from '../../entry/admission.ts';
import { route, type Route } from '../../route.ts';
import {
  collectionChange,
  collectionList,
  collectionObject,
  collectionParameters,
  collectionQuery,
  serializeCollection,
} from '../../../wire/collection.ts';
import { enveloped } from '../../../wire/response.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const roles = ['authority'] as const;

/** Collections of an authority (src/http/README.md, Admin routes). */
export const collectionRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/collections',
    operationId: 'addCollection',
    tag: 'Collections',
    summary: 'Add a collection of products',
    refusals: ['collection_id_taken'],
    access,
    roles,
    body: collectionParameters,
    answers: { 201: enveloped(collectionObject) },
    faults: (_, principal, { accountId }) => foreignAccountFaults(principal, accountId),
    async handle({ app, principal, body, writeOptions }) {
      const { name, productKeys, collectionId = null, accountId = principal.tenant.accountId } = body;
      const command = { name, productKeys, collectionId, accountId };
      const added = await app.writer.write('addCollection', command, writeOptions);
      return added.ok ? created(serializeCollection(added.value)) : added;
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/collections',
    operationId: 'listCollections',
    tag: 'Collections',
    summary: 'List collections',
    access,
    roles,
    query: collectionQuery,
    answers: { 200: enveloped(collectionList) },
    faults: (_, principal, __, { accountId }) => foreignAccountFaults(principal, accountId),
    async handle({ app: { lists }, principal, query, sentTo }) {
      const filter = tenantFilter(principal, query.accountId);
      const rows = await lists.collections.list(filter, withNext(query));
      const total = await lists.collections.count(filter);
      const read = pageOf(
        { list: 'collections', rows, total, keyOf: ({ collectionId }) => [collectionId] },
        query,
        sentTo,
      );
      return ok({ collections: read.items.map(serializeCollection) }, read.headers);
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/collections/:id',
    operationId: 'getCollection',
    tag: 'Collections',
    summary: 'Show a collection',
    access,
    roles,
    owned: 'collection',
    answers: { 200: enveloped(collectionObject) },
    async handle({ app: { reader }, path: { id } }) {
      const collection = await reader.collections.get(id);
      if (collection === null) return notFound('collection');
      return ok(serializeCollection(collection));
    },
  }),
  route({
    method: 'PUT',
    path: '/admin/v1/collections/:id',
    operationId: 'updateCollection',
    tag: 'Collections',
    summary: 'Give a collection another name and other products',
    access,
    roles,
    owned: 'collection',
    body: collectionChange,
    answers: { 200: enveloped(collectionObject) },
    async handle({ app, path: { id }, body, writeOptions }) {
      const changed = await app.writer.write('updateCollection', { collectionId: id, ...body }, writeOptions);
      return changed.ok ? ok(serializeCollection(changed.value)) : changed;
    },
  }),
];
