import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { eventually } from '../support/harness/agent-harness.ts';
import type { ClockReading } from '../../src/domain/clock.ts';
import { AdvancingTime } from '../../src/daemon/system/clock.ts';
import { Remembering, secret, type Tree, type Verified } from '../support/app/remembering.ts';

const hour = 3_600_000;
const day = 24 * hour;
async function createAuthority(tree: Tree = {}, time?: AdvancingTime) {
  const asked = await new Remembering(time).start(tree);
  await asked.admin('post', '/admin/v1/products', { name: 'The Editor', product_key: 'EDITOR', secret });
  const sale = { product_key: 'EDITOR', buyer_email: 'a@example.com' };
  const { purchase_id: purchaseId } = (await asked.admin('post', '/admin/v1/purchases', {
    ...sale,
    license_key: 'KEY',
  })) as Record<string, string>;
  await asked.admin('post', '/admin/v1/purchases', { ...sale, license_key: 'OTHER' });
  return Object.assign(asked, { purchaseId });
}

test('The next verify shows every change of a license, and a change of another key changes nothing.', async () => {
  await using asked = await createAuthority();
  expect(await asked.learn('KEY')).toMatchObject({ status: 200, enabled: true, uses: 0 });
  for (const [kind, seen] of [
    ['usage', { enabled: true, uses: 1 }],
    ['usage', { enabled: true, uses: 2 }],
    ['decrease', { enabled: true, uses: 1 }],
    ['disable', { enabled: false, uses: 1 }],
    ['enable', { enabled: true, uses: 1 }],
  ] as const) {
    await asked.change(kind, 'KEY');
    expect(await asked.verify('KEY')).toMatchObject(seen);
    await asked.change('usage', 'OTHER');
    expect(await asked.verify('KEY')).toMatchObject(seen);
  }
  await asked.admin('post', `/admin/v1/purchases/${asked.purchaseId}/refund`);
  expect(await asked.verify('KEY')).toMatchObject({ status: 200, enabled: false });
});

test('While 16 callers count uses, no verify shows fewer uses than were answered before it.', async () => {
  await using asked = await createAuthority();
  let least = 0;
  const use = async (): Promise<void> => {
    for (let time = 0; time < 20; time += 1) {
      await asked.change('usage', 'KEY');
      least += 1;
    }
  };
  const counting = Promise.all(Array.from({ length: 16 }, use));
  for (let counted = 0; counted < 320; counted = least) {
    const { uses } = (await asked.verify('KEY')) as { uses?: number };
    expect(uses).toBeGreaterThanOrEqual(counted);
  }
  await counting;
  expect(await asked.verify('KEY')).toMatchObject({ uses: 320 });
});

test('Each of 64 callers that change licenses at the same time gets the response to its own key and request.', async () => {
  await using asked = await createAuthority();
  const sale = { product_key: 'EDITOR', buyer_email: 'a@example.com' };
  const callers = Array.from({ length: 64 }, (_, index) => ({ key: `OF-${index}`, kept: asked.connect() }));
  for (const { key } of callers)
    await asked.admin('post', '/admin/v1/purchases', { ...sale, license_key: key });
  for (let uses = 1; uses <= 8; uses += 1) {
    const told = await Promise.all(
      callers.map(async ({ key, kept }) => {
        const body = `license_key=${key}`;
        const head = [
          'PUT /api/v2/license/usage HTTP/1.1',
          `Host: localhost\r\nproduct-secret-key: ${secret}\r\nX-Request-Id: ${uses}-${key}`,
          `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}`,
        ];
        const answer = await kept.send(`${head.join('\r\n')}\r\n\r\n${body}`);
        const id = /^x-request-id: (.*)\r$/im.exec(answer)?.[1];
        const { data } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as { data: Verified };
        return [id, data['license_key'], data['uses']];
      }),
    );
    expect(told).toEqual(callers.map(({ key }) => [`${uses}-${key}`, key, uses]));
  }
});

test('A revoked token stops working at once, and an expiring token stops when it expires.', async () => {
  await using asked = await createAuthority();
  const issue = async (more: object = {}) => {
    const given = { scopes: ['verify'], product_key: 'EDITOR', ...more };
    const { token, token_id: id } = (await asked.admin('post', '/admin/v1/tokens', given)) as Record<
      string,
      string
    >;
    return { id, credential: `Authorization: Bearer ${token}` };
  };
  const revoked = await issue();
  expect(await asked.learn('KEY', revoked.credential)).toMatchObject({ status: 200 });
  await asked.admin('delete', `/admin/v1/tokens/${revoked.id}`);
  expect(await asked.verify('KEY', revoked.credential)).toMatchObject({
    status: 401,
    code: 'credentials_invalid',
  });
  const expiring = await issue({ expires_at: new Date(asked.time.read().wall + hour).toISOString() });
  expect(await asked.learn('KEY', expiring.credential)).toMatchObject({ status: 200 });
  asked.time.advance(hour);
  expect(await asked.verify('KEY', expiring.credential)).toMatchObject({
    status: 401,
    code: 'token_expired',
  });
});

test('The last use of a token is recorded, also if its requests are answered from the cache.', async () => {
  await using asked = await createAuthority();
  const given = { scopes: ['verify'], product_key: 'EDITOR', label: 'till' };
  const { token } = (await asked.admin('post', '/admin/v1/tokens', given)) as { token: string };
  const credential = `Authorization: Bearer ${token}`;
  await asked.learn('KEY', credential);
  const lastUsed = async (): Promise<number> => {
    const { tokens } = (await asked.admin('get', '/admin/v1/tokens?limit=100')) as {
      tokens: { label: string | null; last_used_at: string | null }[];
    };
    return Date.parse(tokens.find(({ label }) => label === 'till')?.last_used_at ?? '1970-01-01');
  };
  asked.time.advance(2 * hour);
  const later = asked.time.read().wall;
  await asked.verify('KEY', credential);
  await eventually(async () => {
    asked.time.advance(60_000);
    return (await lastUsed()) > later - hour;
  });
  expect(await lastUsed()).toBeLessThanOrEqual(later);
});

test('A rotated secret stops working at once, or at the end of keep_old_s.', async () => {
  await using asked = await createAuthority();
  await asked.learn('KEY');
  const rotate = async (more: object) =>
    JSON.stringify(await asked.admin('post', '/admin/v1/products/EDITOR/rotate-secret', more));
  const first = await rotate({});
  expect(await asked.verify('KEY')).toMatchObject({ status: 401, code: 'credentials_invalid' });
  const credential = `product-secret-key: ${/lk_prod_\w+/.exec(first)?.[0] ?? ''}`;
  expect(await asked.learn('KEY', credential)).toMatchObject({ status: 200 });
  await rotate({ keep_old_s: 3_600 });
  expect(await asked.learn('KEY', credential)).toMatchObject({ status: 200 });
  asked.time.advance(hour);
  expect(await asked.verify('KEY', credential)).toMatchObject({ status: 401, code: 'credentials_invalid' });
});

test('The next response shows the new name of a renamed product.', async () => {
  await using asked = await createAuthority({ listen: { dialect: 'payhip' } });
  expect(await asked.learn('KEY')).toMatchObject({ product_name: 'The Editor' });
  await asked.admin('put', '/admin/v1/products/EDITOR', {
    name: 'The Writer',
    recurring: false,
    archived: false,
  });
  expect(await asked.verify('KEY')).toMatchObject({ product_name: 'The Writer' });
});

/** Clocks that stand still, so that rate limits do not recover. */
class FrozenTime extends AdvancingTime {
  readonly #reading = super.read();

  override read(): ClockReading {
    return { ...this.#reading };
  }
}

test('Rate limits and metrics include the responses from the cache.', async () => {
  const rated = { limits: { rate: 20 }, metrics: { open: true } };
  await using asked = await createAuthority(rated, new FrozenTime());
  const statuses: number[] = [];
  for (let time = 0; time < 60; time += 1) statuses.push((await asked.verify('KEY')).status);
  const answered = statuses.filter((status) => status === 200).length;
  expect(answered).toBe(20);
  const { totals } = (await asked.admin('get', '/statusz')) as { totals: { verifies: number } };
  expect(totals.verifies).toBe(answered);
  const text = (await asked.admin('get', '/metrics')) as string;
  const route = 'route="/api/v2/license/verify"';
  expect(text).toContain(`latchkey_requests_total{${route},status="200"} ${answered}\n`);
  expect(text).toContain(`latchkey_requests_total{${route},status="429"} ${60 - answered}\n`);
  expect(text).toContain(`latchkey_verdicts_total{freshness="authoritative",enabled="true"} ${answered}\n`);
});

/** An upstream that returns one key in its own spelling. `says` is its state. */
async function createUpstream() {
  const says = { license_key: 'Own-Spelling', enabled: true, uses: 5, away: false, hangs: false };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://upstream');
      const sent =
        searchParams.get('license_key') ??
        new URLSearchParams(Buffer.concat(chunks).toString()).get('license_key');
      const isOwn = sent?.toLowerCase() === 'own-spelling';
      if (isOwn && says.hangs) return;
      if (isOwn && says.away) {
        response.destroy();
        return;
      }
      if (pathname.endsWith('/usage')) says.uses += 1;
      if (pathname.endsWith('/disable')) says.enabled = false;
      const data = {
        license_key: isOwn ? says.license_key : sent,
        enabled: says.enabled,
        product_link: 'EDITOR',
        buyer_email: 'a@example.com',
        uses: says.uses,
        date: '2024-02-22T11:23:05+00:00',
      };
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    says,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const treeOf = (url: string, more: Tree = {}): Tree => ({
  upstream: { base_url: url },
  products: [{ key: 'EDITOR', secret }],
  freshness: { fresh: '1d', stale: '7d', grace: '14d', refresh: '12h' },
  sync: { writers: 'single', reconcile_after: '400ms', backoff: { first: '20ms', max: '100ms' } },
  ...more,
});

test('A verify with any spelling of a key shows a use, and later the result at the upstream.', async () => {
  await using upstream = await createUpstream();
  await using asked = await new Remembering().start(treeOf(upstream.url));
  const spellings = ['Own-Spelling', 'own-spelling', 'OWN-SPELLING'];
  for (const spelling of spellings) {
    expect(await asked.learn(spelling)).toMatchObject({
      status: 200,
      uses: 5,
      pending: '0',
      cache: 'latchkey; hit',
    });
  }
  upstream.says.away = true;
  for (const [count, spelling] of spellings.entries()) {
    await asked.change('usage', spelling);
    for (const each of spellings) {
      expect(await asked.verify(each)).toMatchObject({ uses: 6 + count, pending: String(count + 1) });
    }
  }
  upstream.says.away = false;
  asked.time.advance(60_000);
  await eventually(
    async () => upstream.says.uses === 8 && (await asked.verify('OWN-SPELLING')).pending === '0',
  );
  for (const each of spellings) expect(await asked.verify(each)).toMatchObject({ uses: 8, pending: '0' });
  await asked.change('disable', 'own-spelling');
  for (const each of spellings) expect(await asked.verify(each)).toMatchObject({ enabled: false });
});

test('Cached and computed responses have the same age, and become stale, in grace and expired at the same times.', async () => {
  await using upstream = await createUpstream();
  await using asked = await new Remembering().start(treeOf(upstream.url));
  await asked.learn('own-spelling');
  upstream.says.away = true;
  let passed = 0;
  const at = (ms: number): void => {
    asked.time.advance(ms - passed);
    passed = ms;
  };
  for (const [ms, seen] of [
    [0, { freshness: 'fresh' }],
    [hour, { freshness: 'fresh' }],
    [day - 60_000, { freshness: 'fresh' }],
    [day + 60_000, { freshness: 'stale' }],
    [7 * day - 60_000, { freshness: 'stale' }],
    [7 * day + 60_000, { freshness: 'grace' }],
    [14 * day - 60_000, { freshness: 'grace' }],
    [14 * day + 60_000, { status: 503, code: 'verdict_expired' }],
  ] as const) {
    at(ms);
    const answer = await asked.verify('own-spelling');
    expect(answer).toMatchObject(seen);
    expect(answer.status === 200 ? Math.abs(answer.age - ms / 1000) : 0).toBeLessThan(60);
    expect(await asked.learn('own-spelling')).toMatchObject(seen);
  }
});

test('A stale key is refreshed, also if its requests are answered from the cache.', async () => {
  await using upstream = await createUpstream();
  await using asked = await new Remembering().start(treeOf(upstream.url));
  await asked.learn('own-spelling');
  upstream.says.away = true;
  asked.time.advance(2 * day);
  expect(await asked.learn('own-spelling')).toMatchObject({ freshness: 'stale', uses: 5 });
  Object.assign(upstream.says, { away: false, uses: 9, enabled: false });
  asked.time.advance(hour);
  await eventually(async () => (await asked.verify('own-spelling')).freshness === 'fresh');
  expect(await asked.verify('own-spelling')).toMatchObject({ uses: 9, enabled: false });
});

/** A machine whose wall clock can be changed. */
class ChangedTime extends AdvancingTime {
  changedByMs = 0;

  override read(): ClockReading {
    const { wall, monotonic } = super.read();
    return { wall: wall + this.changedByMs, monotonic };
  }
}

test('A response that was cached under a wrong clock is not served after the upstream corrected the clock.', async () => {
  await using upstream = await createUpstream();
  const time = new ChangedTime();
  const freshness = { fresh: '1d', stale: '60d', grace: '90d', refresh: '20d' };
  await using asked = await new Remembering(time).start(
    treeOf(upstream.url, { freshness, upstream: { base_url: upstream.url, timeout: '20s' } }),
  );
  expect(await asked.learn('own-spelling')).toMatchObject({ freshness: 'fresh' });
  upstream.says.hangs = true;
  time.changedByMs = 50 * day;
  // The first request is recorded after its response.
  await asked.learn('own-spelling');
  expect(await asked.learn('own-spelling')).toMatchObject({ freshness: 'stale' });
  await asked.learn('another');
  expect(await asked.verify('own-spelling')).toMatchObject({ freshness: 'fresh' });
});

test('A reloaded configuration applies to the next verify.', async () => {
  await using upstream = await createUpstream();
  await using asked = await new Remembering().start(treeOf(upstream.url));
  expect(await asked.learn('own-spelling')).toMatchObject({ status: 200, freshness: 'fresh' });
  upstream.says.away = true;
  asked.time.advance(2 * hour);
  await asked.learn('own-spelling');
  asked.reload(
    treeOf(upstream.url, { freshness: { fresh: '1h', stale: '7d', grace: '14d', refresh: '30m' } }),
  );
  expect(await asked.verify('own-spelling')).toMatchObject({ status: 200, freshness: 'stale' });
  asked.reload(treeOf(upstream.url, { products: [{ key: 'EDITOR', secret: 'another-secret-now' }] }));
  expect(await asked.verify('own-spelling')).toMatchObject({ status: 401, code: 'credentials_invalid' });
  const credential = 'product-secret-key: another-secret-now';
  expect(await asked.learn('own-spelling', credential)).toMatchObject({ status: 200, freshness: 'fresh' });
});
