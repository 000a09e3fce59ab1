import { found, made } from '../answer.ts';
import { productFaults } from '../entry/reach.ts';
import { route, type Route } from '../route.ts';
import { enveloped } from '../wire/envelope.ts';
import { presentPurchase, purchaseObject, purchaseParameters } from '../wire/purchase.ts';

const access = { credential: 'any', scope: 'sell' } as const;
const authorityOnly = true;

/** Purchases of an authority (src/http/README.md, Admin routes). */
export const purchaseRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/purchases',
    summary: 'Record a purchase and issue its license key',
    access,
    authorityOnly,
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
      return added.ok ? made(presentPurchase(added.value)) : added;
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/purchases/:id/refund',
    summary: 'Refund a purchase, which disables its license key',
    access,
    authorityOnly,
    owned: 'purchase',
    answers: { 200: enveloped(purchaseObject) },
    async handle({ app, path: { id }, writeOptions }) {
      const refunded = await app.writer.write('refundPurchase', { purchaseId: id }, writeOptions);
      return refunded.ok ? found(presentPurchase(refunded.value)) : refunded;
    },
  }),
];
