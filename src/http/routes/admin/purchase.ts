import { withNext } from '../../../domain/page.ts';
import { notFound } from '../../../domain/problem/problem.ts';
import { withStoredLicenseKey } from '../../../service/services.ts';
import { emptyList, ok, created, pageOf } from '../../response.ts';
import {
  foreignAccountFaults,
  isUnknownProduct,
  productFaults,
  tenantFilter,
} from '../../entry/admission.ts';
import { route, type Route } from '../../route.ts';
import { inStoredSpelling, lengthOf, searchFor } from '../../search.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  serializePurchase,
  purchaseList,
  purchaseObject,
  purchaseParameters,
  purchaseQuery,
} from '../../../wire/purchase.ts';

const access = { credential: 'any', scope: 'sell' } as const;
const roles = ['authority'] as const;

/** Purchases of an authority (src/http/README.md, Admin routes). */
export const purchaseRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/purchases',
    operationId: 'addPurchase',
    tag: 'Purchases',
    summary: 'Record a purchase and issue its license key',
    refusals: ['license_key_taken', 'product_archived'],
    access,
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
      } = body;
      const command = { productKey, buyerEmail, licenseKey, soldAt, uses, enabled };
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
    access,
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
      return ok({ purchases: read.items.map(serializePurchase) }, read.headers);
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/purchases/:id',
    operationId: 'getPurchase',
    tag: 'Purchases',
    summary: 'Show a purchase',
    access,
    roles,
    owned: 'purchase',
    answers: { 200: enveloped(purchaseObject) },
    async handle({ app: { reader }, path: { id } }) {
      const purchase = await reader.purchases.get(id);
      const license = purchase === null ? null : await reader.licenses.get(purchase.licenseKey);
      if (purchase === null || license === null) {
        return notFound('purchase');
      }
      return ok(serializePurchase({ purchase, license }));
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/purchases/:id/refund',
    operationId: 'refundPurchase',
    tag: 'Purchases',
    summary: 'Refund a purchase, which disables its license key',
    access,
    roles,
    owned: 'purchase',
    answers: { 200: enveloped(purchaseObject) },
    async handle({ app, path: { id }, writeOptions }) {
      const refunded = await app.writer.write('refundPurchase', { purchaseId: id }, writeOptions);
      return refunded.ok ? ok(serializePurchase(refunded.value)) : refunded;
    },
  }),
];
