import type { PurchaseWithLicense } from '../../../domain/catalogue.ts';
import { withNext } from '../../../domain/page.ts';
import { notFound } from '../../../domain/problem/problem.ts';
import { withStatus } from '../../../domain/terms.ts';
import { withStoredLicenseKey } from '../../../service/pasted-keys.ts';
import { ok, created, pageOf, emptyList } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { inStoredSpelling, lengthOf, searchFor } from '../../search.ts';
import { enveloped } from '../../../wire/response.ts';
import { oldSecretUntil, rotateParameters } from '../../../wire/access.ts';
import {
  serializeProduct,
  serializeProductSecret,
  productChange,
  productList,
  productObject,
  productParameters,
  productQuery,
  withLeaseTerms,
  collectionChange,
  collectionList,
  collectionObject,
  collectionParameters,
  collectionQuery,
  serializeCollection,
  serializePurchase,
  purchaseList,
  type PurchaseObject,
  purchaseObject,
  purchaseParameters,
  purchaseQuery,
} from '../../../wire/catalogue.ts';
import { withProductTerms, withTerms } from '../../../wire/terms.ts';
import { foreignAccountFaults, tenantFilter, isUnknownProduct, productFaults } from '../../tenant.ts';

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
        licenseTerms,
      } = withProductTerms(withLeaseTerms(body));
      const command = { name, recurring, accountId, productKey, secret, leaseTerms, licenseTerms };
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
    summary:
      'Rename a product, archive it or put it on sale again, change the terms of its licenses and leases',
    access,
    roles,
    owned: 'product',
    body: productChange,
    answers: { 200: enveloped(productObject) },
    async handle({ app, path: { id }, body, writeOptions }) {
      const changed = await app.writer.write(
        'updateProduct',
        { productKey: id, ...withProductTerms(withLeaseTerms(body)) },
        writeOptions,
      );
      return changed.ok ? ok(serializeProduct(changed.value)) : changed;
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/products/:id/rotate-secret',
    operationId: 'rotateProductSecret',
    tag: 'Products',
    summary: 'Give a product a new secret',
    access,
    roles,
    owned: 'product',
    answersSecret,
    body: rotateParameters,
    answers: { 200: enveloped(productObject) },
    async handle({ app, path: { id }, body, writeOptions }) {
      const oldUntil = oldSecretUntil(body, app.verifiedNow());
      const command = { productKey: id, oldUntil };
      const rotated = await app.writer.write('rotateProductSecret', command, writeOptions);
      return rotated.ok ? ok(serializeProductSecret(rotated.value)) : rotated;
    },
  }),
];

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

const salesAccess = { credential: 'any', scope: 'sell' } as const;

/** A purchase, with how its license stands at `now`. */
function presentPurchase({ purchase, license }: PurchaseWithLicense, now: number): PurchaseObject {
  return serializePurchase({ purchase, license: withStatus(license, now) });
}

/** Purchases of an authority (src/http/README.md, Admin routes). */
export const purchaseRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/purchases',
    operationId: 'addPurchase',
    tag: 'Purchases',
    summary: 'Record a purchase and issue its license key',
    refusals: ['license_key_taken', 'product_archived'],
    access: salesAccess,
    roles,
    // For the longest texts, percent-encoded.
    bodyBytes: 32 * 1024,
    body: purchaseParameters,
    answers: { 201: enveloped(purchaseObject) },
    faults: (app, principal, { productKey }) => productFaults(app, principal, productKey),
    async handle({ app, body, writeOptions }) {
      const {
        productKey,
        buyerEmail,
        licenseKey = null,
        date: soldAt = null,
        uses = 0,
        enabled = true,
        terms,
      } = withTerms(body);
      const command = { productKey, buyerEmail, licenseKey, soldAt, uses, enabled, terms };
      const added = await app.writer.write('addPurchase', command, writeOptions);
      return added.ok ? created(serializePurchase(added.value)) : added;
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/purchases',
    operationId: 'listPurchases',
    tag: 'Purchases',
    summary: 'List purchases, the latest first',
    access: salesAccess,
    roles,
    query: purchaseQuery,
    answers: { 200: enveloped(purchaseList) },
    faults: (_, principal, __, { accountId }) => foreignAccountFaults(principal, accountId),
    async handle({ app, principal, query, searchedKeys, sentTo }) {
      const scoped = { ...searchFor(query, searchedKeys), ...tenantFilter(principal, query.accountId) };
      if (await isUnknownProduct(app, scoped)) return emptyList('purchases');
      const { purchases } = app.lists;
      const { filter, total: counted } = await inStoredSpelling(
        await withStoredLicenseKey(app, scoped),
        (each) => purchases.count(each),
      );
      const rows = await purchases.list(filter, withNext(query));
      const total = lengthOf(filter, counted);
      const read = pageOf(
        {
          list: 'purchases',
          rows,
          total,
          keyOf: ({ purchase }) => [purchase.createdAt, purchase.purchaseId],
        },
        query,
        sentTo,
      );
      const now = app.now();
      return ok({ purchases: read.items.map((each) => presentPurchase(each, now)) }, read.headers);
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/purchases/:id',
    operationId: 'getPurchase',
    tag: 'Purchases',
    summary: 'Show a purchase',
    access: salesAccess,
    roles,
    owned: 'purchase',
    answers: { 200: enveloped(purchaseObject) },
    async handle({ app, path: { id } }) {
      const { purchases, licenses } = app.reader;
      const purchase = await purchases.get(id);
      const license = purchase === null ? null : await licenses.get(purchase.licenseKey);
      if (purchase === null || license === null) {
        return notFound('purchase');
      }
      return ok(presentPurchase({ purchase, license }, app.now()));
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/purchases/:id/refund',
    operationId: 'refundPurchase',
    tag: 'Purchases',
    summary: 'Refund a purchase, which disables its license key',
    access: salesAccess,
    roles,
    owned: 'purchase',
    answers: { 200: enveloped(purchaseObject) },
    async handle({ app, path: { id }, writeOptions }) {
      const refunded = await app.writer.write('refundPurchase', { purchaseId: id }, writeOptions);
      return refunded.ok ? ok(serializePurchase(refunded.value)) : refunded;
    },
  }),
];
