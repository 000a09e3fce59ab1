import { afterEach, beforeEach, expect, test } from 'vitest';
import type { App } from '../../../../src/http/app.ts';
import { licenseView } from '../../../../src/features/buyers/http/views.ts';
import { openLicense, readLicense } from '../../../../src/features/buyers/http/license-view.ts';
import { textsIn } from '../../../../src/features/buyers/http/texts/language.ts';
import { noTerms } from '../../../../src/domain/terms.ts';
import { dayMs, hourMs } from '../../../../src/domain/time.ts';
import { openApp, type TestApp } from '../../../support/app/http-app.ts';
import { buildLicense, product } from '../../../support/builders/store-builders.ts';
import { textOf } from '../support/shop.ts';

const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';
const buyerEmail = 'ada@example.com';
const now = Date.parse('2026-06-01T12:00:00Z');

let opened: TestApp;
let calls: string[];
let app: App;
beforeEach(async () => {
  calls = [];
  opened = await openApp({ now: () => now }, (name) => calls.push(name));
  ({ app } = opened);
  await opened.write(async ({ products, licenses }) => {
    await products.add({ ...product, leaseTerms: { ...product.leaseTerms, seats: 3 } }, 'digest');
    await licenses.add(buildLicense({ licenseKey, buyerEmail }));
  });
});
afterEach(() => opened[Symbol.asyncDispose]());

test('the same is read whatever does not fit, and as much as for a license that opens', async () => {
  const reads: string[][] = [];
  for (const [typed, email] of [
    [licenseKey, buyerEmail],
    [licenseKey, 'eve@example.com'],
    ['ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ', buyerEmail],
    ['ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ', 'eve@example.com'],
  ] as const) {
    calls.length = 0;
    const view = await openLicense(app, { spellings: [typed], email });
    expect(view !== null).toBe(email === buyerEmail && typed === licenseKey);
    reads.push([...calls]);
  }
  expect(reads[0]).toContain('reader.licenses.get');
  for (const read of reads) expect(read).toEqual(reads[0]);
});

async function shown(terms: object, language = 'en'): Promise<string> {
  await opened.write(async ({ licenses }) => {
    await licenses.setTerms({ licenseKey, ...noTerms, ...terms });
  });
  const view = await readLicense(app, licenseKey);
  if (view === null) throw new Error('the license is not read');
  const session = { licenseKey, token: '' };
  return textOf({
    body: licenseView(textsIn(language), view, { session, isIssuer: false, note: null }).body.markup,
  });
}

test('a license without terms has no end', async () => {
  expect(await shown({})).toContain('Status\nValid\nValid until\nWithout end\nSeats\n0 of 3 taken');
});

test('the end of a license, its entitlements and its own seats are shown', async () => {
  const terms = { expiresAt: now + dayMs, terms: { entitlements: ['export', 'pro<i>'], seats: 5 } };
  expect(await shown(terms)).toContain(
    'Status\nValid\nValid until\n2 June 2026\nIncludes\nexport, pro<i>\nSeats\n0 of 5 taken',
  );
  expect(await shown(terms, 'de')).toContain(
    'Status\nGültig\nGültig bis\n2. Juni 2026\nUmfasst\nexport, pro<i>',
  );
});

test('a license that has ended is shown as ended, with its grace', async () => {
  const ended = 'Status\nEnded\nValid until\n1 June 2026';
  expect(await shown({ expiresAt: now - hourMs })).toContain(ended);
  expect(await shown({ expiresAt: now - hourMs, graceUntil: now + hourMs })).toContain(
    'Status\nEnded\nIt can still be used until 1 June 2026 at 13:00 UTC.\nValid until\n1 June 2026',
  );
});

test('the limit of the uses is shown with what is used', async () => {
  expect(await shown({ usesLimit: 5 })).toContain('Without end\nUses\n0 of 5\nSeats');
  expect(await shown({ usesLimit: 5 }, 'de')).toContain('Nutzungen\n0 von 5\n');
});
