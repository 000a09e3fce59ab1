import { expect, test } from 'vitest';
import { done } from '../../src/domain/problem/problem.ts';
import { adminToken, openApp, productsOf, serverOf } from '../support/app/http-app.ts';

test('an authority cannot preload license keys', async () => {
  await using opened = await openApp();
  const answer = await serverOf(opened.app).inject({
    method: 'POST',
    url: '/admin/v1/preload',
    headers: { authorization: `Bearer ${adminToken}` },
    payload: { license_keys: ['A'] },
  });
  expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([409, 'not_an_agent']);
});

test('license keys of a product that the agent does not have are not preloaded, because the preload would never end', async () => {
  const never = async (): Promise<never> => await Promise.reject(new Error('unexpected call'));
  const preload = async () => done({ queued: 1 });
  const sync = { now: never, pause: never, resume: never, wake: () => undefined, preload };
  await using opened = await openApp({ role: 'agent', sync, products: productsOf('press') });
  const server = serverOf(opened.app);
  const queue = async (productKey?: string): Promise<unknown> => {
    const answer = await server.inject({
      method: 'POST',
      url: '/admin/v1/preload',
      headers: { authorization: `Bearer ${adminToken}` },
      payload: { license_keys: ['A'], product_key: productKey },
    });
    return answer.json();
  };
  expect(await queue('press')).toEqual({ data: { queued: 1 } });
  expect(await queue()).toEqual({ data: { queued: 1 } });
  expect(await queue('pres')).toMatchObject({
    status: 422,
    errors: [{ parameter: 'product_key', code: 'product_not_found' }],
  });
});
