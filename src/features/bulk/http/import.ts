import { Readable } from 'node:stream';
import type { Principal } from '../../../domain/access/principal.ts';
import {
  failWith,
  failWithFaults,
  type ParameterFault,
  type Result,
} from '../../../domain/problem/problem.ts';
import { ProblemError } from '../../../http/problem-error.ts';
import { foreignAccountFaults, accountFaults, accessibleAccount } from '../../../http/tenant.ts';
import {
  type CsvFormat,
  CsvUnreadable,
  readCsv,
  separatorFault,
  separatorNames,
  type CsvRow,
} from '../../../wire/csv.ts';
import type { RawParameters, ValuesOf } from '../../../wire/parameters.ts';
import type { ImportReport } from '../service/import.ts';
import type { App } from '../../../http/app.ts';
import { ok, type RouteResponse } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  importReport,
  importRows,
  type ReadRows,
  columnFaults,
  mappingFault,
  presentReport,
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
import { mappingQuery } from '../wire/mapping-shape.ts';
import { ColumnMapping, type ColumnOptions } from '../wire/mapping/columns.ts';
import { importable, type ImportedNoun } from '../wire/mapping/importable.ts';
import { MappingFault } from '../wire/mapping/mapping-fault.ts';
import { previewFile } from '../wire/mapping/preview.ts';
import { importPreview, presentPreview, previewBody, previewQuery } from '../wire/preview.ts';

/** Reads a CSV file in a body: its rows become one member. Throws a problem if the body is no CSV. */
export async function readCsvBody(
  body: Buffer,
  noun: ImportedNoun,
  { query, startedAt }: { query: RawParameters; startedAt: number },
): Promise<RawParameters> {
  // The faults of the query are reported with those of the body.
  const options = mappingQuery.read(query).values;
  const member = `${noun}s`;
  try {
    const mapping = isMapped(options)
      ? new ColumnMapping(importable[noun], columnOptions(options), startedAt)
      : null;
    return new Map([[member, await readRows(body, mapping, formatOf(options))]]);
  } catch (error) {
    if (error instanceof MappingFault) return new Map([[member, error]]);
    throw error instanceof CsvUnreadable ? new ProblemError('malformed_body', error.message) : error;
  }
}

type MappingQuery = Partial<ValuesOf<typeof mappingQuery>>;

function isMapped({ map, from }: MappingQuery): boolean {
  return map !== undefined || from !== undefined;
}

/** A request and the command have the same options. */
function columnOptions({ productKey: product, ...options }: MappingQuery): ColumnOptions {
  return { ...options, product };
}

function formatOf({ separator = 'comma', encoding = 'utf-8' }: MappingQuery): CsvFormat {
  return { separator: separatorNames[separator] ?? ',', encoding };
}

async function readRows(body: Buffer, mapping: ColumnMapping | null, format: CsvFormat): Promise<CsvRows> {
  const rows: CsvRow[] = [];
  let header: readonly string[] = [];
  const toColumns = (names: readonly string[]): readonly string[] => {
    const fault = separatorFault(names);
    if (fault !== null) throw fault;
    header = names;
    return mapping?.assign(names) ?? names;
  };
  for await (const more of readCsv(Readable.from([body]), toColumns, format)) {
    for (const row of more) {
      const converted = mapping === null ? row : mapping.convert(row);
      if (converted !== null) rows.push(converted);
    }
    // The route refuses more rows, so the rest need not be read.
    if (rows.length > maximumRows) break;
  }
  if (mapping === null) return new CsvRows(header, rows);
  mapping.rejectWithoutState();
  rows.push(...mapping.takeRenewals());
  return new CsvRows(header, rows, mapping);
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
  readCsv: (body, request) => readCsvBody(body, 'license', request),
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
  readCsv: (body, request) => readCsvBody(body, 'purchase', request),
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
  readCsv: (body, request) => readCsvBody(body, 'coupon', request),
  query: couponImportQuery,
  body: couponImport,
  answers,
  faults: (_, principal, { coupons }, { accountId, ignore }) => [
    ...foreignAccountFaults(principal, accountId),
    ...columnFaults('coupons', coupons, ignore),
  ],
  async handle({ app, principal, query, body: { coupons }, writeOptions }) {
    const accountId = query.accountId ?? principal.tenant.accountId;
    const command = { ...importRows(coupons, query, couponRow), accountId };
    return present(await app.writer.write('importCoupons', command, writeOptions), coupons);
  },
});

type Rows = Omit<ReadRows<unknown>, 'read' | 'rejected'>;

async function productImportFaults(
  app: App,
  principal: Principal,
  body: Readonly<Record<string, Rows | undefined>>,
  { accountId, ignore }: { accountId?: string | undefined; ignore?: string | undefined },
): Promise<ParameterFault[]> {
  const states = Object.entries(body).flatMap(([member, rows]) => columnFaults(member, rows, ignore));
  return [...(await accountFaults(app, principal, accountId)), ...states];
}

function present(imported: Result<ImportReport>, rows: Rows): Result<RouteResponse> {
  return imported.ok ? ok(presentReport(imported.value, rows)) : imported;
}

/** How the beginning of a file would be read: its separator, encoding and columns. */
function previewOf(noun: ImportedNoun, operationId: string): Route {
  return route({
    method: 'POST',
    path: `/admin/v1/${noun}s/import/preview`,
    operationId,
    tag: 'Import and export',
    summary: `Say how the beginning of a CSV file of ${noun}s would be read`,
    access,
    roles,
    bodyBytes,
    readsOnly: true,
    readCsv: async (body) => new Map([['file', body]]),
    query: previewQuery,
    body: previewBody,
    answers: { 200: enveloped(importPreview) },
    async handle({ app, query, body }) {
      try {
        const options = { ...query, product: query.productKey };
        return ok(presentPreview(await previewFile(body.file, importable[noun], options, app.now())));
      } catch (error) {
        if (error instanceof MappingFault) return failWithFaults([mappingFault(error)]);
        if (error instanceof CsvUnreadable) return failWith('malformed_body', error.message);
        throw error;
      }
    },
  });
}

/** Imports as CSV and JSON (src/http/README.md, Admin routes). */
export const importRoutes: readonly Route[] = [
  importLicenses,
  importPurchases,
  importCoupons,
  previewOf('license', 'previewLicenseImport'),
  previewOf('purchase', 'previewPurchaseImport'),
  previewOf('coupon', 'previewCouponImport'),
];
