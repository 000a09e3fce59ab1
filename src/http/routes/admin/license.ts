import type { Principal } from '../../../domain/access/principal.ts';
import {
  answeredLicense,
  freshnessAt,
  type LicenseSnapshot,
} from '../../../domain/agent/license-snapshot.ts';
import { licenseKeysIn, parseLicenseKey } from '../../../domain/license.ts';
import { withNext, type Page } from '../../../domain/page.ts';
import { notFound } from '../../../domain/problem/problem.ts';
import { withStatus } from '../../../domain/terms.ts';
import type { SnapshotFilter } from '../../../service/agent/tables.ts';
import { storedLicenseKey, withStoredLicenseKey } from '../../../service/pasted-keys.ts';
import type { LicenseFilter } from '../../../service/tables.ts';
import {
  changeList,
  licenseChange,
  licenseDetail,
  licenseObject,
  renewal,
  serializeChange,
  serializeSnapshotDetail,
  serializeSoldDetail,
  type LicenseDetail,
  licenseList,
  licenseQuery,
  serializeListed,
  serializeSnapshot,
  type KnownSnapshot,
  type ListedLicenseObject,
} from '../../../wire/license.ts';
import { pageQuery } from '../../../wire/page.ts';
import { enveloped } from '../../../wire/response.ts';
import { withTerms } from '../../../wire/terms.ts';
import type { App, StoredLicenses } from '../../app.ts';
import { emptyList, ok, pageOf } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { changeSoldLicense } from '../../sold-license.ts';
import { foreignAccountFaults, isUnknownProduct, tenantFilter } from '../../tenant.ts';
import { inStoredSpelling, lengthOf, searchFor } from '../../search.ts';
import { serializeExplained } from './outbox.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const roles = ['authority', 'agent'] as const;
const path = '/admin/v1/licenses';

type Found = { licenses: readonly ListedLicenseObject[]; total: number };
type Filter = Omit<LicenseFilter, 'tenant'>;

const list = route({
  method: 'GET',
  path,
  operationId: 'listLicenses',
  tag: 'Licenses',
  summary: 'List licenses: those of an authority, or those that an agent has stored',
  access,
  roles,
  query: licenseQuery,
  answers: { 200: enveloped(licenseList) },
  faults: (_, principal, __, { accountId }) => foreignAccountFaults(principal, accountId),
  async handle({ app, principal, query, searchedKeys: keys, sentTo }) {
    const { accountId, ...filter } = searchFor(query, keys);
    const page = withNext(query);
    const read =
      app.storedLicenses === null
        ? await soldLicenses(app, { ...filter, ...tenantFilter(principal, accountId) }, page)
        : await storedLicenses(app, app.storedLicenses, { principal, filter, accountId }, page);
    if (read === null) return emptyList('licenses');
    const { licenses: rows } = read;
    const total = lengthOf(filter, read.total);
    const keyOf = (license: ListedLicenseObject): [string] => [license.license_key];
    const shown = pageOf({ list: 'licenses', rows, total, keyOf }, query, sentTo);
    return ok({ licenses: shown.items }, shown.headers);
  },
});

/** Null: the product does not exist, or the credential cannot access it. */
async function soldLicenses(app: App, sent: LicenseFilter, page: Page): Promise<Found | null> {
  if (await isUnknownProduct(app, sent)) return null;
  const { licenses } = app.lists;
  const { filter, total } = await inStoredSpelling(await withStoredLicenseKey(app, sent), (each) =>
    licenses.count(each),
  );
  const now = app.now();
  const listed = await licenses.list(filter, page);
  return { licenses: listed.map((each) => serializeListed(withStatus(each, now))), total };
}

type AgentQuery = { principal: Principal; filter: Filter; accountId: string | undefined };

/** Null: the product is not configured, or the credential cannot access it. */
async function storedLicenses(
  app: App,
  stored: StoredLicenses,
  { principal, filter: { productKey, ...others }, accountId }: AgentQuery,
  page: Page,
): Promise<Found | null> {
  const { tenant, isOperator } = principal;
  // All products of an agent belong to one account.
  if (isOperator && accountId !== undefined && accountId !== tenant.accountId) return null;
  const named = productKey === undefined ? undefined : app.products?.idOf(productKey);
  if (named === null) return null;
  if (tenant.productKey !== null && named !== undefined && named !== tenant.productKey) return null;
  const sent: SnapshotFilter = {
    ...others,
    productId: named ?? tenant.productKey ?? undefined,
    // Under another spelling, the upstream's is stored.
    ...(others.licenseKey !== undefined && { licenseKey: spellingIn(stored, others.licenseKey) }),
  };
  const { filter, total } = await inStoredSpelling(sent, (each) => stored.count(each));
  const alias = total > 0 || sent.search === undefined ? null : snapshotOf(stored, sent.search.text);
  const rows = alias === null ? await stored.list(filter, page) : [alias];
  const now = app.now();
  const licenses = rows.map((each) => serializeSnapshot(knownAt(each, stored, now)));
  return { licenses, total: alias === null ? total : 1 };
}

function knownAt(snapshot: LicenseSnapshot, stored: StoredLicenses, now: number): KnownSnapshot {
  const { confirmedAt, missingSince } = snapshot;
  const { status } = answeredLicense(snapshot, stored.freshness(), now);
  return {
    ...snapshot,
    status,
    freshness: freshnessAt(confirmedAt, stored.freshness(), now),
    missingSince: missingSince === null ? null : stored.dateOf(missingSince),
  };
}

function spellingIn(stored: StoredLicenses, licenseKey: string): string {
  return snapshotOf(stored, licenseKey)?.license.licenseKey ?? licenseKey;
}

/** Also finds a key by another spelling. */
function snapshotOf(stored: StoredLicenses, licenseKey: string): LicenseSnapshot | null {
  for (const spelling of [licenseKey, ...licenseKeysIn(licenseKey)]) {
    const snapshot = stored.get(spelling);
    if (snapshot !== null) return snapshot;
  }
  return null;
}

const show = route({
  method: 'GET',
  path: `${path}/:key`,
  operationId: 'getLicense',
  tag: 'Licenses',
  summary: 'Show all that is known about a license',
  refusals: ['license_not_found'],
  access,
  roles,
  answers: { 200: enveloped(licenseDetail) },
  async handle({ app, principal, path: { key } }) {
    const licenseKey = parseLicenseKey(key);
    if (licenseKey === null) return notFound('license');
    const detail =
      app.storedLicenses === null
        ? await soldDetail(app, principal, licenseKey)
        : await storedDetail(app, app.storedLicenses, { principal, licenseKey });
    return detail === null ? notFound('license') : ok(detail);
  },
});

async function soldDetail(app: App, principal: Principal, licenseKey: string): Promise<LicenseDetail | null> {
  const { reader } = app;
  const filter = { licenseKey: await storedLicenseKey(reader, licenseKey), ...tenantFilter(principal) };
  const [license] = await reader.licenses.list(filter, { limit: 1, offset: 0 });
  if (license === undefined) return null;
  const product = await reader.products.get(license.productKey);
  const { purchaseId } = license;
  return serializeSoldDetail(withStatus(license, app.now()), {
    product: {
      productKey: license.productKey,
      name: product?.name ?? null,
      seats: license.terms?.seats ?? product?.leaseTerms.seats ?? null,
    },
    purchase: purchaseId === null ? null : await reader.purchases.get(purchaseId),
    ...(await seatsOf(app, license.licenseKey)),
  });
}

async function seatsOf(app: App, licenseKey: string): Promise<{ activations: number; seatsTaken: number }> {
  return (await app.seatsOf?.(licenseKey)) ?? { activations: 0, seatsTaken: 0 };
}

const maxOperations = 100;

async function storedDetail(
  app: App,
  stored: StoredLicenses,
  { principal: { tenant }, licenseKey: sent }: { principal: Principal; licenseKey: string },
): Promise<LicenseDetail | null> {
  const snapshot = snapshotOf(stored, sent);
  if (snapshot === null) return null;
  const { productId } = snapshot;
  if (tenant.productKey !== null && tenant.productKey !== productId) return null;
  const { licenseKey } = snapshot.license;
  const page = { limit: maxOperations, offset: 0 };
  const operations = (await app.operations?.openOf(licenseKey, null, page)) ?? [];
  return serializeSnapshotDetail(knownAt(snapshot, stored, app.now()), {
    product: {
      productKey: app.products?.keyOf(productId) ?? productId,
      name: await app.productName(productId),
      seats: snapshot.license.terms?.seats ?? stored.seatsOf(productId),
    },
    graceUntil: snapshot.confirmedAt + stored.freshness().graceMs,
    operations: operations.map((each) => serializeExplained(app, each)),
    operationsTotal: (await app.operations?.countOpenOf(licenseKey, null)) ?? 0,
    ...(await seatsOf(app, licenseKey)),
  });
}

/** What happened to a license (src/http/README.md, License history). */
const listHistory = route({
  method: 'GET',
  path: `${path}/:key/history`,
  operationId: 'listLicenseHistory',
  tag: 'Licenses',
  summary: 'List what has changed a license, the latest first',
  refusals: ['license_not_found'],
  access,
  query: pageQuery('changes'),
  answers: { 200: enveloped(changeList) },
  async handle({ app, principal, path: { key }, query, sentTo }) {
    const licenseKey = parseLicenseKey(key);
    if (licenseKey === null) return notFound('license');
    const tenant = principal.isOperator ? null : principal.tenant;
    // Older changes may not have been removed yet.
    const page = { ...withNext(query), since: app.historySince() };
    const history = await app.licenseService.history(tenant, licenseKey, page);
    if (!history.ok) return history;
    const { changes, total } = history.value;
    const rows = { list: 'changes', rows: changes, total } as const;
    const read = pageOf({ ...rows, keyOf: ({ number }) => [number] }, query, sentTo);
    return ok({ changes: read.items.map(serializeChange) }, read.headers);
  },
});

const ofSeller = {
  tag: 'Licenses',
  refusals: ['license_not_found', 'license_replaced'],
  access: { credential: 'any', scope: 'sell' },
  roles: ['authority'],
  answers: { 200: enveloped(licenseObject) },
} as const;

const update = route({
  ...ofSeller,
  method: 'PUT',
  path: `${path}/:key`,
  operationId: 'updateLicense',
  summary: 'Change the terms of a license; those that are missing stay as they are',
  body: licenseChange,
  handle: (request) =>
    changeSoldLicense(request, (license) => {
      const { terms: change } = withTerms(request.body);
      return request.app.writer.write('updateLicense', { ...license, change }, request.writeOptions);
    }),
});

const renew = route({
  ...ofSeller,
  method: 'POST',
  path: `${path}/:key/renew`,
  operationId: 'renewLicense',
  summary: 'Renew a license: from its end if that is in the future, else from now',
  body: renewal,
  handle: (request) =>
    changeSoldLicense(request, (license) => {
      const command = { ...license, span: request.body.for };
      return request.app.writer.write('renewLicense', command, request.writeOptions);
    }),
});

/** Licenses for people (src/http/README.md, Admin routes). */
export const licenseAdminRoutes: readonly Route[] = [list, show, listHistory, update, renew];
