import { defaultAccountId } from '../../domain/grant.ts';
import { found, listHeaders, made } from '../answer.ts';
import { route, type Route } from '../route.ts';
import * as wire from '../wire/catalogue.ts';
import { enveloped } from '../wire/envelope.ts';
import { licenseList, licenseQuery, presentLicense } from '../wire/license.ts';
import { pageQuery } from '../wire/page.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const authorityOnly = true;
const answersSecret = true;

const accounts: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/accounts',
    summary: 'Add an account',
    access,
    authorityOnly,
    answersSecret,
    body: wire.accountParameters,
    answers: { 201: enveloped(wire.accountObject) },
    async handle({ desk, body, asked }) {
      const added = await desk.writer.write('addAccount', body, asked);
      return added.ok ? made(wire.presentAccountKey(added.value)) : added;
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/accounts',
    summary: 'List accounts',
    access,
    authorityOnly,
    query: pageQuery,
    answers: { 200: enveloped(wire.accountList) },
    handle({ desk: { reader }, query, sentTo }) {
      const list = reader.accounts.list(query).map(wire.presentAccount);
      return found({ accounts: list }, listHeaders(reader.accounts.count(), query, sentTo));
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/accounts/:id/roll-key',
    summary: 'Give an account a new API key',
    access,
    authorityOnly,
    answersSecret,
    answers: { 200: enveloped(wire.accountObject) },
    async handle({ desk, path: { id }, asked }) {
      const rolled = await desk.writer.write('rollApiKey', { accountId: id }, asked);
      return rolled.ok ? found(wire.presentAccountKey(rolled.value)) : rolled;
    },
  }),
];

const products: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/products',
    summary: 'Add a product',
    access,
    authorityOnly,
    answersSecret,
    body: wire.productParameters,
    answers: { 201: enveloped(wire.productObject) },
    async handle({ desk, body, asked }) {
      const {
        name,
        recurring = false,
        accountId = defaultAccountId,
        productKey = null,
        secret = null,
      } = body;
      const command = { name, recurring, accountId, productKey, secret };
      const added = await desk.writer.write('addProduct', command, asked);
      return added.ok ? made(wire.presentProductSecret(added.value)) : added;
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/products',
    summary: 'List products',
    access,
    authorityOnly,
    query: pageQuery,
    answers: { 200: enveloped(wire.productList) },
    handle({ desk: { reader }, query, sentTo }) {
      const list = reader.products.list(query).map(wire.presentProduct);
      return found({ products: list }, listHeaders(reader.products.count(), query, sentTo));
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/products/:id/roll-secret',
    summary: 'Give a product a new secret',
    access,
    authorityOnly,
    answersSecret,
    answers: { 200: enveloped(wire.productObject) },
    async handle({ desk, path: { id }, asked }) {
      const rolled = await desk.writer.write('rollProductSecret', { productKey: id }, asked);
      return rolled.ok ? found(wire.presentProductSecret(rolled.value)) : rolled;
    },
  }),
];

const collections: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/collections',
    summary: 'Add a collection of products',
    access,
    authorityOnly,
    body: wire.collectionParameters,
    answers: { 201: enveloped(wire.collectionObject) },
    async handle({ desk, body, asked }) {
      const { name, productKeys, collectionId = null, accountId = defaultAccountId } = body;
      const command = { name, productKeys, collectionId, accountId };
      const added = await desk.writer.write('addCollection', command, asked);
      return added.ok ? made(wire.presentCollection(added.value)) : added;
    },
  }),
];

const purchases: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/purchases',
    summary: 'Record a purchase and issue its license key',
    access,
    authorityOnly,
    body: wire.purchaseParameters,
    answers: { 201: enveloped(wire.purchaseObject) },
    async handle({ desk, body: { productKey, buyerEmail, licenseKey = null }, asked }) {
      const command = { productKey, buyerEmail, licenseKey };
      const added = await desk.writer.write('addPurchase', command, asked);
      return added.ok ? made(wire.presentPurchase(added.value)) : added;
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/purchases/:id/refund',
    summary: 'Refund a purchase, which disables its license key',
    access,
    authorityOnly,
    answers: { 200: enveloped(wire.purchaseObject) },
    async handle({ desk, path: { id }, asked }) {
      const refunded = await desk.writer.write('refundPurchase', { purchaseId: id }, asked);
      return refunded.ok ? found(wire.presentPurchase(refunded.value)) : refunded;
    },
  }),
];

const licenses: readonly Route[] = [
  route({
    method: 'GET',
    path: '/admin/v1/licenses',
    summary: 'List licenses',
    access,
    authorityOnly,
    query: licenseQuery,
    answers: { 200: enveloped(licenseList) },
    handle({ desk: { reader }, query, sentTo }) {
      const list = reader.licenses.list(query, query).map(presentLicense);
      return found({ licenses: list }, listHeaders(reader.licenses.count(query), query, sentTo));
    },
  }),
];

/** The catalogue as an authority's operator works on it (contract section 5). */
export const adminCatalogueRoutes: readonly Route[] = [
  ...accounts,
  ...products,
  ...collections,
  ...purchases,
  ...licenses,
];
