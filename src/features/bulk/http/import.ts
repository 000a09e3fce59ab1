import { Readable } from 'node:stream';
import type { Principal } from '../../../domain/access/principal.ts';
import type { ParameterFault, Result } from '../../../domain/problem/problem.ts';
import { ProblemError } from '../../../http/problem-error.ts';
import { foreignAccountFaults, accountFaults, accessibleAccount } from '../../../http/tenant.ts';
import { CsvUnreadable, readCsv, separatorFault, type CsvRow } from '../../../wire/csv.ts';
import type { RawParameters } from '../../../wire/parameters.ts';
import type { ImportReport } from '../service/import.ts';
import type { App } from '../../../http/app.ts';
import { ok, type RouteResponse } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  importReport,
  importRows,
  type ReadRows,
  stateColumnFaults,
  CsvRows,
  maximumRows,
} from '../wire/import.ts';
import {
  couponImport,
  couponImportQuery,
  couponRow,
  licenseImport,
  licenseRow,
  productImportQuery,
  purchaseImport,
  purchaseRow,
} from '../wire/import-rows.ts';

/** Reads a CSV file in a body: its rows become one member. Throws a problem if the body is no CSV. */
export async function readCsvBody(body: Buffer, member: string): Promise<RawParameters> {
  const rows: CsvRow[] = [];
  let header: readonly string[] = [];
  const toColumns = (names: readonly string[]): readonly string[] => {
    const fault = separatorFault(names);
    if (fault !== null) throw fault;
    header = names;
    return names;
  };
  try {
    for await (const more of readCsv(Readable.from([body]), toColumns)) {
      for (const row of more) rows.push(row);
      // The route refuses more rows, so the rest need not be read.
      if (rows.length > maximumRows) break;
    }
  } catch (error) {
    throw error instanceof CsvUnreadable ? new ProblemError('malformed_body', error.message) : error;
  }
  return new Map([[member, new CsvRows(header, rows)]]);
}

const access = { credential: 'any', scope: 'admin' } as const;
const roles = ['authority'] as const;
/** Ten thousand rows of a hundred characters are a megabyte. */
const bodyBytes = 4 * 1024 ** 2;
const answers = { 200: enveloped(importReport) };

const importLicenses = route({
  method: 'POST',
  path: '/admin/v1/licenses/import',
  operationId: 'importLicenses',
  tag: 'Import and export',
  summary: 'Take licenses over from another store, with their dates, counts and states',
  refusals: ['import_rejected'],
  access,
  roles,
  bodyBytes,
  readCsv: (body) => readCsvBody(body, 'licenses'),
  query: productImportQuery,
  body: licenseImport,
  answers,
  faults: (app, principal, { licenses }, query) => productImportFaults(app, principal, { licenses }, query),
  async handle({ app, principal, query, body: { licenses, productKey = query.productKey }, writeOptions }) {
    const rows = importRows(licenses, query, (cells) => licenseRow(cells, productKey));
    const command = { ...rows, accountId: query.accountId ?? accessibleAccount(principal) };
    return present(await app.writer.write('importLicenses', command, writeOptions), licenses);
  },
});

const importPurchases = route({
  method: 'POST',
  path: '/admin/v1/purchases/import',
  operationId: 'importPurchases',
  tag: 'Import and export',
  summary: 'Take purchases over from another store, with the licenses that came with them',
  refusals: ['import_rejected'],
  access,
  roles,
  bodyBytes,
  readCsv: (body) => readCsvBody(body, 'purchases'),
  query: productImportQuery,
  body: purchaseImport,
  answers,
  faults: (app, principal, { purchases }, query) => productImportFaults(app, principal, { purchases }, query),
  async handle({ app, principal, query, body: { purchases, productKey = query.productKey }, writeOptions }) {
    const rows = importRows(purchases, query, (cells) => purchaseRow(cells, productKey));
    const command = { ...rows, accountId: query.accountId ?? accessibleAccount(principal) };
    return present(await app.writer.write('importPurchases', command, writeOptions), purchases);
  },
});

const importCoupons = route({
  method: 'POST',
  path: '/admin/v1/coupons/import',
  operationId: 'importCoupons',
  tag: 'Import and export',
  summary: 'Take coupons over from another store',
  refusals: ['import_rejected', 'account_not_found'],
  access,
  roles,
  bodyBytes,
  readCsv: (body) => readCsvBody(body, 'coupons'),
  query: couponImportQuery,
  body: couponImport,
  answers,
  faults: (_, principal, { coupons }, { accountId, ignore }) => [
    ...foreignAccountFaults(principal, accountId),
    ...stateColumnFaults('coupons', coupons, ignore),
  ],
  async handle({ app, principal, query, body: { coupons }, writeOptions }) {
    const accountId = query.accountId ?? principal.tenant.accountId;
    const command = { ...importRows(coupons, query, couponRow), accountId };
    return present(await app.writer.write('importCoupons', command, writeOptions), coupons);
  },
});

type Rows = Pick<ReadRows<unknown>, 'ignored'>;

async function productImportFaults(
  app: App,
  principal: Principal,
  body: Readonly<Record<string, Rows | undefined>>,
  { accountId, ignore }: { accountId?: string | undefined; ignore?: string | undefined },
): Promise<ParameterFault[]> {
  const states = Object.entries(body).flatMap(([member, rows]) => stateColumnFaults(member, rows, ignore));
  return [...(await accountFaults(app, principal, accountId)), ...states];
}

function present(imported: Result<ImportReport>, { ignored }: Rows): Result<RouteResponse> {
  return imported.ok ? ok({ ...imported.value, ignored }) : imported;
}

/** Imports as CSV and JSON (src/http/README.md, Admin routes). */
export const importRoutes: readonly Route[] = [importLicenses, importPurchases, importCoupons];
