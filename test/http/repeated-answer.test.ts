import { expect, test } from 'vitest';
import { done } from '../../src/domain/problem/problem.ts';
import { dialects } from '../../src/http/dialects/all.ts';
import { Memory } from '../../src/http/memory.ts';
import { Rates } from '../../src/http/entry/request-rates.ts';
import type { Licensing } from '../../src/service/answers.ts';
import { adminToken, limits } from '../support/app/http-app.ts';
import { serveApp } from '../support/app/http-served.ts';
import { KeptConnection } from '../support/network/kept-connection.ts';
import { httpClient } from '../support/network/raw-http.ts';

const license = {
  licenseKey: 'KEY',
  productKey: 'P',
  buyerEmail: 'buyer@example.com',
  uses: 0,
  enabled: true,
  createdAt: 0,
};
const nothing: Omit<Licensing, 'verify'> = {
  change: () => Promise.reject(new Error('nothing is changed')),
  history: () => Promise.reject(new Error('no history is asked for')),
};
const verify = `GET /api/v2/license/verify?license_key=KEY HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;

test('of one key, each product’s secret is answered for its own product, also from memory', async () => {
  const memory = new Memory();
  await using served = await serveApp({ memory, knownGrants: memory }, { limits });
  await using http = httpClient(served.listeners.tcp);
  const headers = { authorization: `Bearer ${adminToken}` };
  const secretOf = (product: string): string => `the-secret-of-${product}`;
  const products = ['EDITOR', 'PLAYER'];
  for (const product of products) {
    const json = { name: product, product_key: product, secret: secretOf(product) };
    await http.post('/admin/v1/products', { headers, json });
    const sold = { product_key: product, buyer_email: 'a@example.com', license_key: `OF-${product}` };
    await http.post('/admin/v1/purchases', { headers, json: sold });
  }
  await using kept = new KeptConnection(served.listeners.tcp);
  for (const own of products) {
    for (const product of [own, ...products, own]) {
      const bytes = verify
        .replace('license_key=KEY', `license_key=OF-${product}`)
        .replace(/Authorization: .*/, `product-secret-key: ${secretOf(own)}`);
      const told = product === own ? ' 200 OK' : '"code":"license_not_found"';
      for (let time = 0; time < 3; time += 1) expect(await kept.send(bytes)).toContain(told);
    }
  }
});

test('an agent tells the name of a product as it knows it now, also where it answers from memory', async () => {
  const memory = new Memory();
  const repeat = { since: 0, until: Infinity, repeated: () => undefined };
  const provenance = { freshness: 'fresh', confirmedAt: 0, graceUntil: null, pending: 0 } as const;
  const told = { license, productKey: 'P', provenance: { ...provenance, cache: 'hit', ageMs: 0 } } as const;
  const licensing = { ...nothing, verify: () => Promise.resolve(done({ ...told, repeat })) };
  let name = 'Editor';
  const dialect = dialects.payhip;
  await using served = await serveApp(
    { role: 'agent', dialect, licensing, memory, knownGrants: memory, productName: () => name },
    { limits },
  );
  await using kept = new KeptConnection(served.listeners.tcp);
  for (let time = 0; time < 3; time += 1)
    expect(await kept.send(verify)).toContain('"product_name":"Editor"');
  name = 'Editor 2';
  expect(await kept.send(verify)).toContain('"product_name":"Editor 2"');
});

test('what is answered from memory tells its age, counts for the rate, and is told of as repeated', async () => {
  const seen = { reads: 0, repeated: 0, now: 0 };
  const provenance = { freshness: 'fresh', confirmedAt: 0, graceUntil: null, pending: 0 } as const;
  const licensing: Licensing = {
    ...nothing,
    verify: async () => {
      seen.reads += 1;
      return done({
        license,
        productKey: 'P',
        provenance: { ...provenance, cache: 'hit', ageMs: seen.now },
        repeat: { since: 0, until: 100_000, repeated: () => void (seen.repeated += 1) },
      });
    },
  };
  const rates = new Rates(
    () => ({ rate: 5, failedRate: 1_000_000 }),
    () => 0,
  );
  const memory = new Memory();
  const now = (): number => seen.now;
  await using served = await serveApp({ licensing, memory, knownGrants: memory, rates, now }, { limits });
  await using kept = new KeptConnection(served.listeners.tcp);
  const told: string[] = [];
  for (let time = 0; time < 7; time += 1) {
    const answer = await kept.send(verify);
    told.push(`${answer.slice(9, 12)} ${/^age: (.*)\r$/im.exec(answer)?.[1] ?? 'of no age'}`);
    seen.now += 1_500;
  }
  const refused = ['429 of no age', '429 of no age'];
  expect(told).toEqual(['200 0', '200 1', '200 3', '200 4', '200 6', ...refused]);
  expect(seen).toMatchObject({ reads: 2, repeated: 3 });
});
