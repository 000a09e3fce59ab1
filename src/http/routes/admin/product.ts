import { withNext } from '../../../domain/page.ts';
import { notFound } from '../../../domain/problem/problem.ts';
import { ok, created, pageOf } from '../../response.ts';
import { foreignAccountFaults, tenantFilter } from '../../entry/admission.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import { oldSecretUntil, rollParameters } from '../../../wire/account.ts';
import {
  serializeProduct,
  serializeProductSecret,
  productChange,
  productList,
  productObject,
  productParameters,
  productQuery,
  withLeaseTerms,
} from '../../../wire/product.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const roles = ['authority'] as const;
const answersSecret = true;

/** Products of an authority (src/http/README.md, Admin routes). */
export const productRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/products',
    operationId: 'addProduct',
    tag: 'Products',
    summary: 'Add a product',
    refusals: ['product_key_taken'],
    access,
    roles,
    answersSecret,
    body: productParameters,
    answers: { 201: enveloped(productObject) },
    faults: (_, principal, { accountId }) => foreignAccountFaults(principal, accountId),
    async handle({ app, principal, body, writeOptions }) {
      const {
        name,
        recurring = false,
        accountId = principal.tenant.accountId,
        productKey = null,
        secret = null,
        leaseTerms,
      } = withLeaseTerms(body);
      const command = { name, recurring, accountId, productKey, secret, leaseTerms };
      const added = await app.writer.write('addProduct', command, writeOptions);
      return added.ok ? created(serializeProductSecret(added.value)) : added;
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/products',
    operationId: 'listProducts',
    tag: 'Products',
    summary: 'List products',
    access,
    roles,
    query: productQuery,
    answers: { 200: enveloped(productList) },
    faults: (_, principal, __, { accountId }) => foreignAccountFaults(principal, accountId),
    async handle({ app: { lists }, principal, query, sentTo }) {
      const filter = { archived: query.archived, ...tenantFilter(principal, query.accountId) };
      const rows = await lists.products.list(filter, withNext(query));
      const total = await lists.products.count(filter);
      const read = pageOf(
        { list: 'products', rows, total, keyOf: ({ productKey }) => [productKey] },
        query,
        sentTo,
      );
      return ok({ products: read.items.map(serializeProduct) }, read.headers);
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/products/:id',
    operationId: 'getProduct',
    tag: 'Products',
    summary: 'Show a product',
    access,
    roles,
    owned: 'product',
    answers: { 200: enveloped(productObject) },
    async handle({ app: { reader }, path: { id } }) {
      const product = await reader.products.get(id);
      if (product === null) return notFound('product');
      return ok(serializeProduct(product));
    },
  }),
  route({
    method: 'PUT',
    path: '/admin/v1/products/:id',
    operationId: 'updateProduct',
    tag: 'Products',
    summary: 'Rename a product, archive it or put it on sale again, change the terms of its leases',
    access,
    roles,
    owned: 'product',
    body: productChange,
    answers: { 200: enveloped(productObject) },
    async handle({ app, path: { id }, body, writeOptions }) {
      const changed = await app.writer.write(
        'updateProduct',
        { productKey: id, ...withLeaseTerms(body) },
        writeOptions,
      );
      return changed.ok ? ok(serializeProduct(changed.value)) : changed;
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/products/:id/roll-secret',
    operationId: 'rollProductSecret',
    tag: 'Products',
    summary: 'Give a product a new secret',
    access,
    roles,
    owned: 'product',
    answersSecret,
    body: rollParameters,
    answers: { 200: enveloped(productObject) },
    async handle({ app, path: { id }, body, writeOptions }) {
      const oldUntil = oldSecretUntil(body, app.verifiedNow());
      const command = { productKey: id, oldUntil };
      const rolled = await app.writer.write('rollProductSecret', command, writeOptions);
      return rolled.ok ? ok(serializeProductSecret(rolled.value)) : rolled;
    },
  }),
];
