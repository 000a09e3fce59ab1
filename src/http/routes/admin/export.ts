import { z } from 'zod';
import type { Principal } from '../../../domain/access/principal.ts';
import { unknownProduct } from '../../../domain/problem/not-found.ts';
import { done, type ParameterFault } from '../../../domain/problem/problem.ts';
import type { Awaitable } from '../../../service/tables.ts';
import type { Answer } from '../../answer.ts';
import type { App } from '../../app.ts';
import { knownAccountFaults, onlyAccountOf, withinReach } from '../../entry/reach.ts';
import { route, type Route } from '../../route.ts';
import {
  couponExport,
  csvOf,
  licenseExport,
  purchaseExport,
  type ExportShape,
} from '../../wire/bulk/export.ts';
import { identifier } from '../../wire/common/kind.ts';
import { parameters } from '../../wire/common/parameters.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const authorityOnly = true;
const answers = { 200: z.string().meta({ contentMediaType: 'text/csv' }) };
const ofAccount = parameters({ account_id: identifier.optional() });
const ofProduct = parameters({ product_key: identifier.optional(), account_id: identifier.optional() });
const pageLength = 500;

const exportLicenses = route({
  method: 'GET',
  path: '/admin/v1/licenses/export',
  operationId: 'exportLicenses',
  tag: 'Import and export',
  summary: 'All licenses as CSV, as an import takes it',
  access,
  authorityOnly,
  query: ofProduct,
  answers,
  faults: exportFaults,
  handle({ app: { reader }, principal, query }) {
    const filter = { ...query, ...withinReach(principal, query.accountId) };
    const read = (after: string) => reader.licenses.after(filter, after, pageLength);
    return csv(
      pages(read, '', ({ licenseKey }) => licenseKey),
      licenseExport,
    );
  },
});

const exportPurchases = route({
  method: 'GET',
  path: '/admin/v1/purchases/export',
  operationId: 'exportPurchases',
  tag: 'Import and export',
  summary: 'All purchases as CSV, with their licenses, as an import takes it',
  access,
  authorityOnly,
  query: ofProduct,
  answers,
  faults: exportFaults,
  handle({ app: { reader }, principal, query }) {
    const filter = { ...query, ...withinReach(principal, query.accountId) };
    const read = (after: string) => reader.purchases.after(filter, after, pageLength);
    return csv(
      pages(read, '', ({ purchase }) => purchase.purchaseId),
      purchaseExport,
    );
  },
});

const exportCoupons = route({
  method: 'GET',
  path: '/admin/v1/coupons/export',
  operationId: 'exportCoupons',
  tag: 'Import and export',
  summary: "All of an account's coupons as CSV, as an import takes it",
  access,
  authorityOnly,
  query: ofAccount,
  answers,
  faults: exportFaults,
  handle({ app: { reader }, principal, query }) {
    const accountId = query.accountId ?? principal.reach.accountId;
    const read = (after: number) => reader.coupons.after(accountId, after, pageLength);
    return csv(
      pages(read, 0, ({ id }) => id),
      couponExport,
    );
  },
});

/**
 * The faults of an account or a product that the credential does not find: an export of nothing would pass for one of
 * all that there is.
 */
async function exportFaults(
  app: App,
  principal: Principal,
  _: unknown,
  { accountId, productKey }: { accountId?: string | undefined; productKey?: string | undefined },
): Promise<ParameterFault[]> {
  const unknown = await knownAccountFaults(app, principal, accountId);
  if (unknown.length > 0 || productKey === undefined) return unknown;
  const product = await app.reader.products.get(productKey);
  const account = accountId ?? onlyAccountOf(principal);
  const isFound = product !== null && (account === null || product.accountId === account);
  return isFound ? [] : [unknownProduct];
}

/** Reads page by page, each behind the last key of the one before. */
async function* pages<Item, Key>(
  read: (after: Key) => Awaitable<Item[]>,
  first: Key,
  keyOf: (item: Item) => Key,
): AsyncGenerator<readonly Item[]> {
  for (let items = await read(first); ; items = await read(keyOf(items.at(-1) as Item))) {
    if (items.length === 0) return;
    yield items;
  }
}

function csv<Item>(
  items: AsyncIterable<readonly Item[]>,
  shape: ExportShape<Item>,
): { ok: true; value: Answer } {
  const headers = { 'Content-Type': 'text/csv; charset=utf-8' };
  return done({ status: 200, headers, body: csvOf(items, shape) });
}

/** What brings a catalogue elsewhere (src/http/README.md, Admin routes). */
export const exportRoutes: readonly Route[] = [exportLicenses, exportPurchases, exportCoupons];
