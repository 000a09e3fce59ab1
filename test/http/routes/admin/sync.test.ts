import { expect, test } from 'vitest';
import { done } from '../../../../src/domain/problem/problem.ts';
import type { WriteOptions, SyncControl } from '../../../../src/service/ports.ts';
import type { Status } from '../../../../src/service/status.ts';
import {
  asAdmin,
  authorityStatus,
  codeOf,
  openApp,
  serverOf,
  productsOf,
} from '../../../support/app/http-app.ts';

const acts = ['now', 'pause', 'resume'] as const;

const agentStatus: Status = {
  ...authorityStatus,
  role: 'agent',
  upstream: {
    state: 'paused',
    since: Date.parse('2026-01-01T00:00:00Z'),
    protocol: 'plain',
    follows: [],
    breaker: 'closed',
    lastSuccessAt: null,
    lastError: null,
    lastErrorAt: null,
    recoveredAt: null,
    retryAfterUntil: null,
    nextAttemptAt: null,
    proxy: null,
    pausedProducts: [],
    couponsPaused: true,
  },
  outbox: {
    depth: {
      pending: 1,
      in_flight: 0,
      uncertain: 2,
      inferred: 0,
      conflicted: 0,
      dead: 0,
      delivered: 0,
      cancelled: 0,
      dropped: 0,
    },
    held: 2,
    oldestAgeMs: null,
  },
};

function askedSync(): { sync: SyncControl; asked: [string, WriteOptions][] } {
  const asked: [string, WriteOptions][] = [];
  const act = (name: string) => (by: WriteOptions) => {
    asked.push([name, by]);
    return Promise.resolve(done(null));
  };
  return {
    sync: {
      now: act('now'),
      pause: act('pause'),
      resume: act('resume'),
      wake: () => undefined,
      preload: async () => done({ queued: 0 }),
    },
    asked,
  };
}

test.each(acts)('sync %s is recorded with its user, and returns the state of the upstream', async (act) => {
  const { sync, asked } = askedSync();
  await using opened = await openApp({ role: 'agent', sync, status: () => agentStatus });
  const url = `/admin/v1/sync/${act}`;
  const answer = await serverOf(opened.app).inject({ method: 'POST', url, headers: asAdmin });
  expect([answer.statusCode, answer.json()]).toEqual([
    200,
    {
      data: {
        upstream: {
          state: 'paused',
          since: '2026-01-01T00:00:00+00:00',
          protocol: 'plain',
          follows: [],
          breaker: 'closed',
          last_success_at: null,
          last_error: null,
          last_error_at: null,
          recovered_at: null,
          retry_after: null,
          next_attempt_at: null,
          proxy: null,
          paused_products: [],
          coupons_paused: true,
        },
        outbox: {
          pending: 1,
          in_flight: 0,
          uncertain: 2,
          held: 2,
          inferred: 0,
          conflicted: 0,
          dead: 0,
          delivered: 0,
          oldest_age_s: null,
        },
      },
    },
  ]);
  expect(asked).toEqual([
    [act, { actor: 'token:admin', idempotency: null, requestId: answer.headers['x-request-id'] }],
  ]);
});

test.each(acts)('an authority cannot sync %s', async (act) => {
  await using opened = await openApp();
  const answer = await opened.send('POST', `sync/${act}`);
  expect([answer.statusCode, codeOf(answer)]).toEqual([409, 'not_an_agent']);
});

test('a repeated request under an idempotency key gets the first response, even if the state has changed', async () => {
  let status = agentStatus;
  await using opened = await openApp({ role: 'agent', status: () => status });
  const { writer } = opened.app;
  const pause = (asked: WriteOptions) => writer.write('pauseSync', { isPaused: true }, asked);
  const sync = { ...askedSync().sync, pause };
  const server = serverOf({ ...opened.app, sync });
  const request = {
    method: 'POST',
    url: '/admin/v1/sync/pause',
    headers: { ...asAdmin, 'idempotency-key': 'k' },
  } as const;
  const first = await server.inject(request);
  status = { ...agentStatus, outbox: agentStatus.outbox && { ...agentStatus.outbox, held: 0 } };
  const second = await server.inject(request);
  expect([second.statusCode, second.body]).toEqual([200, first.body]);
  expect(await opened.record()).toEqual(['token:admin | sync.pause | upstream | ']);
});

test('an authority cannot preload license keys', async () => {
  await using opened = await openApp();
  const answer = await opened.send('POST', 'preload', { license_keys: ['A'] });
  expect([answer.statusCode, codeOf(answer)]).toEqual([409, 'not_an_agent']);
});

test('license keys of a product that the agent does not have are not preloaded, because the preload would never end', async () => {
  const never = async (): Promise<never> => await Promise.reject(new Error('unexpected call'));
  const preload = async () => done({ queued: 1 });
  const sync = {
    now: never,
    pause: never,
    resume: never,
    wake: () => undefined,
    preload,
  };
  await using opened = await openApp({ role: 'agent', sync, products: productsOf('press') });
  const queue = async (productKey?: string): Promise<unknown> =>
    (await opened.send('POST', 'preload', { license_keys: ['A'], product_key: productKey })).json();
  expect(await queue('press')).toEqual({ data: { queued: 1 } });
  expect(await queue()).toEqual({ data: { queued: 1 } });
  expect(await queue('pres')).toMatchObject({
    status: 422,
    errors: [{ parameter: 'product_key', code: 'product_not_found' }],
  });
});

test('the license keys of the store are listed product by product, if the store lists them', async () => {
  const asked: unknown[] = [];
  const sync: SyncControl = {
    ...askedSync().sync,
    listKeys: async (productId, after) => {
      asked.push([productId, after]);
      return done({ licenseKeys: ['A'], next: after === null ? 'second' : null });
    },
  };
  await using opened = await openApp({ role: 'agent', sync, products: productsOf('press', 'brush') });
  type Answer = { data: { product_key: string; next: string | null }; errors?: unknown; code?: string };
  const list = async (query: string): Promise<Answer> =>
    (await opened.send('GET', `store/license-keys${query}`)).json();
  const listed: string[] = [];
  for (let query = ''; listed.length < 9;) {
    const { data } = await list(query);
    listed.push(data.product_key);
    if (data.next === null) break;
    query = `?after=${data.next}`;
  }
  expect(listed).toEqual(['press', 'press', 'brush', 'brush']);
  const pages = asked.map((each) => (each as [string, string | null])[1]);
  expect(pages).toEqual([null, 'second', null, 'second']);
  const last = await list(`?product_key=press&after=${(await list('')).data.next}`);
  expect(last.data).toMatchObject({ product_key: 'press', next: null });
  for (const query of [
    '?product_key=pres',
    '?after=nonsense',
    '?product_key=brush&after=WyJwcmVzcyIsbnVsbF0',
  ])
    expect((await list(query)).errors).toMatchObject([{ code: 'product_not_found' }]);

  const others = serverOf({ ...opened.app, sync: askedSync().sync });
  const refused = await others.inject({ url: '/admin/v1/store/license-keys', headers: asAdmin });
  expect([refused.statusCode, refused.json<Answer>().code]).toEqual([501, 'not_offered_by_store']);
});
