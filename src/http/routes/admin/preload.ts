import { failWith, failWithFaults } from '../../../domain/problem/problem.ts';
import { ok } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import { preloadParameters, queuedObject } from '../../../wire/license.ts';

const preload = route({
  method: 'POST',
  path: '/admin/v1/preload',
  operationId: 'preloadLicenses',
  tag: 'Sync',
  summary: 'Fetch license keys ahead, so that an agent answers them offline',
  refusals: ['not_an_agent'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  bodyBytes: 2 * 1024 ** 2,
  body: preloadParameters,
  answers: { 200: enveloped(queuedObject) },
  async handle({ app, body: { licenseKeys, productKey = null }, writeOptions }) {
    if (app.sync === null) return failWith('not_an_agent', 'An authority has every license key.');
    const productId = productKey === null ? null : (app.products?.idOf(productKey) ?? null);
    if (productKey !== null && productId === null) {
      const detail = 'This agent has no such product.';
      return failWithFaults([{ parameter: 'product_key', code: 'product_not_found', detail }]);
    }
    const queued = await app.sync.preload({ licenseKeys, productKey: productId }, writeOptions);
    return queued.ok ? ok(queued.value) : queued;
  },
});

/** The keys that an agent fetches on request (src/http/README.md, Admin routes). */
export const preloadRoutes: readonly Route[] = [preload];
