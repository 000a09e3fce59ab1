import { expect, test } from 'vitest';
import { failWith } from '../../../src/domain/problem/problem.ts';
import type { Caller } from '../../../src/service/ports.ts';
import { routes } from '../../../src/stores/gumroad/http.ts';
import { openApp, productsOf, serverOf } from '../../support/app/http-app.ts';
import { keys, productId } from '../../support/stores/gumroad.ts';

test('programs on other machines take turns by their networks when they look up unknown keys, however many connections they open', async () => {
  const callers: (Caller | null)[] = [];
  await using opened = await openApp({ role: 'agent', products: productsOf(productId) });
  const app = {
    ...opened.app,
    licenseService: {
      ...opened.app.licenseService,
      verify: async (_: unknown, __: string, ___: AbortSignal, caller: Caller | null) => {
        callers.push(caller);
        return failWith('upstream_unreachable', 'away');
      },
    },
  };
  const parts = { accessToken: () => null, client: {}, learn: async () => undefined };
  const server = serverOf(app, {}, [], routes(parts));
  const body = { product_id: productId, license_key: keys.good };
  for (const remoteAddress of ['203.0.113.7', '203.0.113.7', '198.51.100.9', '127.0.0.1'])
    await server.inject({ method: 'POST', url: '/v2/licenses/verify', remoteAddress, payload: body });
  const [first, second, other, local] = callers;
  expect(second).toEqual(first);
  expect(first).toEqual({ credential: 'software', connection: '203.0.113.7' });
  expect(other).toEqual({ credential: 'software', connection: '198.51.100.9' });
  expect(local?.connection).toMatch(/^connection \d+$/);
});
