import { z } from 'zod';
import { parseJson } from '../../../domain/text.ts';
import { failWith, failWithFaults, type Result } from '../../../domain/problem/problem.ts';
import type { SyncControl, WriteOptions } from '../../../service/ports.ts';
import { afterCommit } from '../../../service/writer.ts';
import type { AppIn } from '../../app.ts';
import { ok, responseUnreadable, type RouteResponse } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import { serializeSync, syncObject } from '../../../wire/status.ts';
import {
  preloadParameters,
  serializeStoreKeys,
  queuedObject,
  storeKeysObject,
  storeKeysParameters,
} from '../../../wire/license.ts';

const shared = {
  tag: 'Sync',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  roles: ['agent'],
  answers: { 200: enveloped(syncObject) },
} as const;

function syncRoute(act: 'now' | 'pause' | 'resume', operationId: string, summary: string): Route {
  return route({
    ...shared,
    method: 'POST',
    path: `/admin/v1/sync/${act}`,
    operationId,
    summary,
    handle: async ({ app, writeOptions }) =>
      await actAndShow(app, writeOptions, (sync) => sync[act](writeOptions)),
  });
}

async function actAndShow(
  app: AppIn<'agent'>,
  { idempotency }: WriteOptions,
  act: (sync: SyncControl) => Promise<Result<unknown>>,
): Promise<Result<RouteResponse>> {
  const acted = await act(app.sync);
  if (!acted.ok) return acted;
  // A repeated request gets the first answer, stored under its idempotency key.
  if (acted.value !== null) return ok(acted.value);
  const value = await afterCommit(app.log, async () => serializeSync(await app.status()), null);
  if (value === null) return responseUnreadable();
  if (idempotency !== null) {
    await afterCommit(app.log, () => app.writer.write('storeFinalResponse', { idempotency, value }), null);
  }
  return ok(value);
}

const preload = route({
  method: 'POST',
  path: '/admin/v1/preload',
  operationId: 'preloadLicenses',
  tag: 'Sync',
  summary: 'Fetch license keys ahead, so that an agent answers them offline',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  roles: ['agent'],
  elsewhere: { detail: 'An authority has every license key.' },
  bodyBytes: 2 * 1024 ** 2,
  body: preloadParameters,
  answers: { 200: enveloped(queuedObject) },
  async handle({ app, body: { licenseKeys, productKey = null }, writeOptions }) {
    const productId = productKey === null ? null : app.products.idOf(productKey);
    if (productKey !== null && productId === null) {
      const detail = 'This agent has no such product.';
      return failWithFaults([{ parameter: 'product_key', code: 'product_not_found', detail }]);
    }
    const queued = await app.sync.preload({ licenseKeys, productKey: productId }, writeOptions);
    return queued.ok ? ok(queued.value) : queued;
  },
});

const storeKeys = route({
  method: 'GET',
  path: '/admin/v1/store/license-keys',
  operationId: 'listStoreLicenseKeys',
  tag: 'Sync',
  summary: 'List the license keys that the store of an agent has sold',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  roles: ['agent'],
  refusals: ['not_offered_by_store', 'upstream_refused', 'upstream_unreachable'],
  query: storeKeysParameters,
  answers: { 200: enveloped(storeKeysObject) },
  async handle({ app, query: { productKey = null, after = null }, signal }) {
    if (app.sync.listKeys === undefined)
      return failWith('not_offered_by_store', 'The upstream does not list its license keys.');
    const configured = app.products.configured.map(({ id }) => id);
    const named = productKey === null ? null : app.products.idOf(productKey);
    const listed = productKey === null ? configured : configured.filter((id) => id === named);
    const [productId, page] = after === null ? [listed[0] ?? '', null] : readPlace(after);
    if (!listed.includes(productId)) {
      const detail = 'This agent has no such product.';
      const parameter = after === null ? 'product_key' : 'after';
      return failWithFaults([{ parameter, code: 'product_not_found', detail }]);
    }
    const read = await app.sync.listKeys(productId, page, signal);
    if (!read.ok) return read;
    const { licenseKeys, next } = read.value;
    const later = listed[listed.indexOf(productId) + 1] ?? null;
    const place: Place | null = next !== null ? [productId, next] : later === null ? null : [later, null];
    return ok(
      serializeStoreKeys({
        productKey: app.products.keyOf(productId),
        licenseKeys,
        next: place === null ? null : writePlace(place),
      }),
    );
  },
});

/** Where a list goes on: the id of a product, and a page of it at the store; null: the first page. */
type Place = [productId: string, page: string | null];

const placeText = z.tuple([z.string(), z.string().nullable()]);

function writePlace(place: Place): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

function readPlace(text: string): Place {
  return placeText.safeParse(parseJson(Buffer.from(text, 'base64url').toString())).data ?? ['', null];
}

/** Manual control of synchronization (src/http/README.md, Admin routes). */
export const syncRoutes: readonly Route[] = [
  preload,
  storeKeys,
  syncRoute('now', 'syncNow', 'Send what waits at once: no backoff, no breaker'),
  syncRoute('pause', 'pauseSync', 'Send nothing more, across restarts too, until resumed'),
  syncRoute('resume', 'resumeSync', 'Resume after a pause, and try refused credentials again'),
];
