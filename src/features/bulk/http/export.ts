import { Readable } from 'node:stream';
import { z } from 'zod';
import type { Principal } from '../../../domain/access/principal.ts';
import { unknownProduct, done, type ParameterFault } from '../../../domain/problem/problem.ts';
import type { RouteResponse } from '../../../http/response.ts';
import type { App } from '../../../http/app.ts';
import { route, type Route } from '../../../http/route.ts';
import { accountFaults, accessibleAccount, tenantFilter } from '../../../http/tenant.ts';
import type { ExportOrder } from '../wire/export.ts';
import { identifier, parameters } from '../../../wire/parameters.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const roles = ['authority'] as const;
const answers = { 200: z.string().meta({ contentMediaType: 'text/csv' }) };
const ofAccount = parameters({ account_id: identifier.optional() });
const ofProduct = parameters({ product_key: identifier.optional(), account_id: identifier.optional() });

/** The route that exports what belongs to products. */
function productExport(
  noun: 'licenses' | 'purchases',
  { operationId, summary }: { operationId: string; summary: string },
): Route {
  return route({
    method: 'GET',
    path: `/admin/v1/${noun}/export`,
    operationId,
    tag: 'Import and export',
    summary,
    access,
    roles,
    sessions: 'admin',
    isStreamed: true,
    query: ofProduct,
    answers,
    faults: exportFaults,
    handle: ({ app, principal, query: { productKey, accountId } }) =>
      csv(app, { noun, filter: { productKey, ...tenantFilter(principal, accountId) }, after: null }),
  });
}

const exportCoupons = route({
  method: 'GET',
  path: '/admin/v1/coupons/export',
  operationId: 'exportCoupons',
  tag: 'Import and export',
  summary: "All of an account's coupons as CSV, as an import takes it",
  access,
  roles,
  sessions: 'admin',
  isStreamed: true,
  query: ofAccount,
  answers,
  faults: exportFaults,
  handle: ({ app, principal, query }) =>
    csv(app, { noun: 'coupons', accountId: query.accountId ?? principal.tenant.accountId, after: null }),
});

/**
 * Refuses an account or a product that the credential does not find: an empty export would look complete.
 */
async function exportFaults(
  app: App,
  principal: Principal,
  _: unknown,
  { accountId, productKey }: { accountId?: string | undefined; productKey?: string | undefined },
): Promise<ParameterFault[]> {
  const unknown = await accountFaults(app, principal, accountId);
  if (unknown.length > 0 || productKey === undefined) return unknown;
  const product = await app.reader.products.get(productKey);
  const account = accountId ?? accessibleAccount(principal);
  const isFound = product !== null && (account === null || product.accountId === account);
  return isFound ? [] : [unknownProduct];
}

/** Reads page by page: each page after the previous page was sent. */
async function* pages(app: App, first: ExportOrder): AsyncGenerator<string> {
  for (let order = first; ;) {
    const { csv: text, last } = await app.longRead('exportPage', order);
    if (text !== '') yield text;
    if (last === null) return;
    // The last key belongs to the same noun.
    order = { ...order, after: last } as ExportOrder;
  }
}

function csv(app: App, first: ExportOrder): { ok: true; value: RouteResponse } {
  const headers = { 'Content-Type': 'text/csv; charset=utf-8' };
  return done({ status: 200, headers, body: Readable.from(pages(app, first), { objectMode: false }) });
}

/** Exports as CSV (src/http/README.md, Admin routes). */
export const exportRoutes: readonly Route[] = [
  productExport('licenses', {
    operationId: 'exportLicenses',
    summary: 'All licenses as CSV, as an import takes it',
  }),
  productExport('purchases', {
    operationId: 'exportPurchases',
    summary: 'All purchases as CSV, with their licenses, as an import takes it',
  }),
  exportCoupons,
];
