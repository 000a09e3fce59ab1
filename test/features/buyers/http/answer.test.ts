import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import jsqr from 'jsqr';
import { dayMs } from '../../../../src/domain/time.ts';
import { qrCode } from '../../../../src/features/buyers/http/qr-code.ts';
import type { HttpResponse } from '../../../support/network/raw-http.ts';
import { claimsIn, issuedKey, issuedProduct, type TestDevice } from '../../leases/support/issuer-harness.ts';
import { buyerEmail, BuyersShop, fieldsOf, textOf, type Customer } from '../support/shop.ts';

// Its types say that the function is a member.
const scanPixels = jsqr as unknown as typeof jsqr.default;

/** Reads a QR code as a camera does. */
function scan({ body }: Pick<HttpResponse, 'body'>): string | undefined {
  const svg = String(body);
  const side = Number(/viewBox="0 0 (\d+)/.exec(svg)?.[1]);
  const pixels = new Uint8ClampedArray(side * side * 4).fill(255);
  const squares = /<path[^>]* d="([^"]+)"/.exec(svg)?.[1] ?? '';
  for (const [, left, top, width] of squares.matchAll(/M(\d+),(\d+)h(\d+)/g))
    for (let y = Number(top); y < Number(top) + Number(width); y += 1)
      for (let x = Number(left); x < Number(left) + Number(width); x += 1)
        pixels.set([0, 0, 0], (y * side + x) * 4);
  return scanPixels(pixels, side, side)?.data;
}

const opened = new AsyncDisposableStack();
let shop: BuyersShop;
let customer: Customer;
let fields: Record<string, string>;
let machine: TestDevice;
beforeAll(async () => {
  shop = opened.use(await new BuyersShop().open({ terms: { seats: 1 } }));
  machine = await shop.device('Mill');
  customer = shop.customer();
  fields = fieldsOf(await customer.open(issuedKey), '/license/answer');
});
afterAll(() => opened.disposeAsync());

const answerTo = async (more: Record<string, string | File>): Promise<HttpResponse> =>
  await customer.upload('/license/answer', { ...fields, ...more });

describe('the request of a machine without a network', () => {
  test('is answered by a file, however it was uploaded or pasted, and again', async () => {
    const request = await machine.sign('take');
    for (const sent of [
      { file: new File([`${request}\n`], 'machine.req'), request: '' },
      { file: new File([], ''), request: ` ${request.replaceAll(/.{70}/g, '$&\r\n> ')}\r\n` },
      { file: new File([Buffer.from(`\ufeff${request}\r\n`, 'utf16le')], 'machine.req'), request: '' },
    ]) {
      const answer = await answerTo({ ...sent, as: 'file' });
      expect([answer.status, answer.headers]).toMatchObject([
        200,
        {
          'content-disposition': 'attachment; filename="machine.lease"',
          'content-type': 'application/json; charset=utf-8',
          'x-content-type-options': 'nosniff',
        },
      ]);
      const { lease } = answer.body as { lease: string };
      expect(claimsIn(lease)).toMatchObject({
        license: { license_key: issuedKey },
        seats: { limit: 1, taken: 1 },
      });
    }
    expect(textOf(await customer.open(issuedKey))).toContain('Devices\nMill\n');
  });

  test('is answered by a QR code that can be scanned, with the same content as the file', async () => {
    machine.seq = 1;
    const request = await machine.sign('renew');
    const page = await answerTo({ request, as: 'code' });
    expect(textOf(page)).toMatch(/The license is then valid on the machine until \d+ \w+ \d{4}\./);
    const scanned = JSON.parse(scan(page) ?? '') as { lease: string; keys: string };
    const file = (
      await customer.upload('/license/answer', { ...fieldsOf(page, '/license/answer'), as: 'file' })
    ).body as { lease: string; keys: string };
    expect([claimsIn(scanned.lease), scanned.keys]).toEqual([claimsIn(file.lease), file.keys]);
    expect(textOf(page)).toContain(`The answer as text\n${JSON.stringify(scanned)}`);
  });

  test('gets a notice if the machine gives its seat back', async () => {
    machine.seq = 2;
    const page = await answerTo({ request: await machine.sign('end'), as: 'code' });
    expect(textOf(page)).toContain('The answer contains no license');
    machine.seq = 3;
    expect((await answerTo({ request: await machine.sign('take'), as: 'file' })).status).toBe(200);
  });

  test('gets a sequence if the machine was restored', async () => {
    machine.seq = 1;
    const page = await answerTo({ request: await machine.sign('take'), as: 'code' });
    expect(textOf(page)).toContain('The machine and the seller disagree about earlier requests.');
  });

  test.each([
    ['is no request', async () => 'hello', 422, 'This is not a request of a machine'],
    ['is missing', async () => '', 422, 'This is not a request of a machine'],
    [
      'is forged',
      async () => (await machine.sign('take')).replace(/.{20}$/, 'A'.repeat(20)),
      422,
      'This is not a request of a machine',
    ],
    [
      'is for another license of the product',
      async () => {
        const sold = { product_key: issuedProduct, license_key: 'OTHER', buyer_email: buyerEmail };
        await shop.admin('POST', '/purchases', sold);
        return await machine.sign('take', { license_key: 'OTHER' });
      },
      404,
      'The request is for another license.',
    ],
    [
      'is for a license key that a database refuses',
      async () => await machine.sign('take', { license_key: 'A\0' }),
      404,
      'The request is for another license.',
    ],
    [
      'needs a seat and none is free',
      async () => await (await shop.device('second')).sign('take'),
      409,
      'No seat is free. Free the seat of a device, and send the request again.',
    ],
  ])('is refused with a sentence if it %s', async (_, request, status, sentence) => {
    const page = await answerTo({ request: await request(), as: 'file' });
    expect([page.status, textOf(page)]).toEqual([status, expect.stringContaining(sentence)]);
    expect(textOf(page)).toContain('A machine without a network');
  });

  test('is answered after a seat was freed', async () => {
    const second = await shop.device('second');
    const request = await second.sign('take');
    expect((await answerTo({ request, as: 'file' })).status).toBe(409);
    shop.time.advance(2 * dayMs);
    const page = await customer.open(issuedKey);
    expect(textOf(await customer.freeSeat(page))).toContain('The seat of Mill is free.');
    fields = fieldsOf(page, '/license/answer');
    expect((await answerTo({ request, as: 'file' })).status).toBe(200);
  });
});

test('without leases, there is no form for machines', async () => {
  await using other = await new BuyersShop().open({ isSetUp: false });
  const page = await other.customer().open(issuedKey);
  expect(textOf(page)).not.toContain('A machine without a network');
});

test('an answer that is too long for a QR code has none', () => {
  expect(qrCode('x'.repeat(2953))).not.toBeNull();
  expect(qrCode('ü'.repeat(1477))).toBeNull();
});
