import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { readCents } from '../../../../src/cli/values.ts';
import { readItem } from '../../../../src/cli/commands/coupon-redemption.ts';
import { adminToken, openApp, serverOf } from '../../../support/app/http-app.ts';

type Row = { coupon: string; cart: string; off: string; left: string; lines: string };

/** The worked examples of the guide. */
function examples(): Row[] {
  const guide = readFileSync(
    fileURLToPath(new URL('../../../../examples/guides/seller.md', import.meta.url)),
    'utf8',
  );
  const section = guide.slice(
    guide.indexOf('## Coupons at checkout'),
    guide.indexOf('## Take over a catalogue'),
  );
  const rows = section.split('\n').filter((line) => line.startsWith('| `--type'));
  return rows.map((line) => {
    const [coupon = '', cart = '', off = '', left = '', lines = ''] = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', ''));
    return { coupon, cart, off, left, lines };
  });
}

/** The options of `coupon create` under the names of the API. */
function termsOf(options: string): Record<string, string> {
  const names: Record<string, string> = {
    type: 'coupon_type',
    product: 'product_key',
    collection: 'collection_id',
  };
  const pairs = [...options.matchAll(/--(\S+) (\S+)/g)].map(([, name = '', value = '']) => [
    names[name] ?? name.replaceAll('-', '_'),
    name.includes('amount') ? String(readCents(`--${name} `, value)) : value,
  ]);
  return Object.fromEntries(pairs) as Record<string, string>;
}

const cents = (amount: number): string => (amount / 100).toFixed(2);

type Data = { reasons: string[]; discount: number; total: number; lines: { discount: number }[] };

async function ask(server: FastifyInstance, url: string, payload: object): Promise<Data> {
  const headers = { authorization: `Bearer ${adminToken}` };
  const answer = await server.inject({ method: 'POST', url, headers, payload });
  expect(answer.statusCode, answer.body).toBeLessThan(300);
  return answer.json<{ data: Data }>().data;
}

test('the program computes the worked examples of the guide', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  for (const key of ['A', 'B', 'MONTHLY']) {
    await ask(server, '/admin/v1/products', { name: key, product_key: key, recurring: key === 'MONTHLY' });
  }
  await ask(server, '/admin/v1/collections', { name: 'Set', collection_id: 'SET', product_keys: ['B'] });
  const rows = examples();
  expect(rows).toHaveLength(13);
  for (const [index, row] of rows.entries()) {
    const code = `ROW-${index}`;
    await ask(server, '/api/v2/coupons', { code, ...termsOf(row.coupon) });
    const items = row.cart.split(' ').map(readItem);
    const { reasons, discount, total, lines } = await ask(server, '/agent/v1/quote', { code, items });
    const each = lines.map((line) => cents(line.discount)).join(' + ');
    const answered = { off: cents(discount), left: cents(total), lines: reasons.join(' ') || each };
    expect({ ...row, ...answered }).toEqual(row);
  }
});
