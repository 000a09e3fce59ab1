import { expect, test } from 'vitest';
import { overviewObject, seriesObject } from '../../../../src/features/console/wire/console.ts';
import type { Overview } from '../../../../src/features/console/service/overview.ts';
import { adminToken, authorityStatus, openApp, serverOf } from '../../../support/app/http-app.ts';
import { buildActivation } from '../../leases/support/activation-builders.ts';
import { buildLicense, product } from '../../../support/builders/store-builders.ts';
import { silentConsole } from '../app-part.ts';

const headers = { authorization: `Bearer ${adminToken}` };
const noon = Date.UTC(2026, 0, 1, 12);
const values = { pending: 2, oldestAgeS: 30, upstream: 'up' } as const;

test('The series of an authority has its sales, refunds and new devices in their steps.', async () => {
  await using opened = await openApp({ now: () => noon + 8_000 });
  await opened.write(async ({ products, licenses, purchases, activations }) => {
    await products.add(product, 'secret');
    for (const [index, licenseKey] of ['A', 'B'].entries()) {
      await licenses.add(buildLicense({ licenseKey }));
      const purchase = { purchaseId: licenseKey, licenseKey, createdAt: noon - index * 600_000 - 1 };
      await purchases.add({ ...purchase, refundedAt: index === 0 ? null : noon - 60_000 });
      await activations.put(
        buildActivation({ licenseKey, activationId: licenseKey, createdAt: noon - 61_000 }),
      );
    }
  });
  const answer = await serverOf(opened.app).inject({ url: '/admin/v1/series', headers });
  const { shop } = seriesObject.parse(answer.json<{ data: unknown }>().data);
  const stepsOf = (counts: readonly number[] = []): unknown =>
    counts.flatMap((number, index) => (number === 0 ? [] : [[counts.length - index, number]]));
  expect([stepsOf(shop?.sales), stepsOf(shop?.refunds), stepsOf(shop?.activations)]).toEqual([
    [
      [12, 1],
      [2, 1],
    ],
    [[2, 1]],
    [[3, 2]],
  ]);
});

test('The series has the minutes of a day by default, and ten minutes each of a month on request.', async () => {
  await using opened = await openApp({ now: () => noon + 8_000 });
  await opened.write(async ({ series }) => {
    await series.add({ ...values, stepS: 60, at: noon - 60_000, verifies: 3, uses: 1 });
    await series.add({ ...values, stepS: 600, at: noon - 600_000, verifies: 9, uses: 4 });
  });
  const server = serverOf(opened.app);
  const read = async (query: string) => {
    const answer = await server.inject({ url: `/admin/v1/series${query}`, headers });
    return seriesObject.parse(answer.json<{ data: unknown }>().data);
  };
  const day = await read('');
  expect([day.start, day.step_s, day.verifies.length]).toEqual(['2025-12-31T12:00:00+00:00', 60, 1_440]);
  expect([day.verifies.at(-1), day.uses.at(-1), day.pending.at(-1), day.oldest_age_s.at(-1)]).toEqual([
    3, 1, 2, 30,
  ]);
  expect(day.upstream.slice(-2)).toEqual([null, 'up']);
  const month = await read('?step=600');
  expect([month.step_s, month.verifies.length, month.verifies.at(-1)]).toEqual([600, 4_320, 9]);
  const wrong = await server.inject({ url: '/admin/v1/series?step=61', headers });
  expect([wrong.statusCode, wrong.json<{ errors: object[] }>().errors]).toEqual([
    422,
    [{ parameter: 'step', code: 'not_one_of', detail: 'step must be one of 60, 600.' }],
  ]);
});

const attention = {
  code: 'storage_full',
  level: 'fail',
  text: 'The disk is full.',
  advice: 'Free some space.',
  command: null,
  page: null,
} as const;

test('The overview has the same ETag while nothing happens, however much time passes, and answers 304 to it.', async () => {
  let shown: Overview = {
    ...authorityStatus,
    startedAt: noon,
    options: [],
    currency: null,
    oldestAt: null,
    products: null,
    attention: [attention],
  };
  const console = { ...silentConsole({ status: () => authorityStatus }), overview: () => shown };
  await using opened = await openApp({ console });
  const server = serverOf(opened.app);
  const read = (tag?: string) =>
    server.inject({
      url: '/admin/v1/overview',
      headers: { ...headers, ...(tag !== undefined && { 'if-none-match': tag }) },
    });
  const first = await read();
  expect(overviewObject.parse(first.json<{ data: unknown }>().data)).toMatchObject({
    role: 'authority',
    started_at: '2026-01-01T12:00:00+00:00',
    attention: [attention],
    outbox: null,
  });
  const tag = String(first.headers['etag']);
  expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
  shown = { ...shown, uptimeMs: 99_999_999, clock: { ...shown.clock, now: shown.clock.now + 99_000_000 } };
  for (const sent of [tag, `"other", ${tag}`, `W/${tag}`, '*']) {
    const again = await read(sent);
    expect([sent, again.statusCode, again.body, again.headers['etag']]).toEqual([sent, 304, '', tag]);
  }
  expect((await read('"other"')).statusCode).toBe(200);
  shown = { ...shown, totals: { verifies: 1, uses: 0 } };
  const changed = await read(tag);
  expect([changed.statusCode, changed.headers['etag'] === tag]).toEqual([200, false]);
});
