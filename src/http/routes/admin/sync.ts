import { failWithFaults, type Result } from '../../../domain/problem/problem.ts';
import type { SyncControl, WriteOptions } from '../../../service/ports.ts';
import { afterCommit } from '../../../service/writer.ts';
import type { AppIn } from '../../app.ts';
import { ok, responseUnreadable, type RouteResponse } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import { serializeSync, syncObject } from '../../../wire/status.ts';
import { preloadParameters, queuedObject } from '../../../wire/license.ts';

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

/** Manual control of synchronization (src/http/README.md, Admin routes). */
export const syncRoutes: readonly Route[] = [
  preload,
  syncRoute('now', 'syncNow', 'Send what waits at once: no backoff, no breaker'),
  syncRoute('pause', 'pauseSync', 'Send nothing more, across restarts too, until resumed'),
  syncRoute('resume', 'resumeSync', 'Resume after a pause, and try refused credentials again'),
];
