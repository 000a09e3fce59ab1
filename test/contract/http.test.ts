import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminToken, apiKey } from '../support/app/http-app.ts';
import { serveApp, type Served } from '../support/app/http-served.ts';
import {
  httpClient,
  type HttpResponse,
  type HttpClient,
  type RequestOptions,
} from '../support/network/raw-http.ts';

type Data = Record<string, unknown>;

const admin = { authorization: `Bearer ${adminToken}` };
const seller = { 'service-api-key': apiKey };
const datetime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;

function data(answer: HttpResponse): Data {
  expect(Object.keys(answer.body as Data)).toEqual(['data']);
  return (answer.body as { data: Data }).data;
}

function problem(answer: HttpResponse): { code: string; faults: string[] } {
  expect(answer.headers['content-type']).toBe('application/problem+json');
  const { type, title, status, detail, code, request_id: id, errors = [] } = answer.body as Data;
  expect(type).toBe(`urn:latchkey:problem:${String(code)}`);
  expect(status).toBe(answer.status);
  for (const text of [title, detail, id]) expect(text).toMatch(/./);
  const faults = (errors as { parameter: string; code: string }[]).map(
    (each) => `${each.parameter}:${each.code}`,
  );
  return { code: String(code), faults: faults.sort() };
}

let served: Served;
beforeAll(async () => {
  served = await serveApp();
});
afterAll(() => served[Symbol.asyncDispose]());

describe.each(['tcp', 'socket'] as const)('over %s', (listener) => {
  let http: HttpClient;
  let productKey: string;
  let secret: { 'product-secret-key': string };
  let licenseKey: string;

  beforeAll(async () => {
    http = httpClient(served.listeners[listener]);
    const product = data(await http.post('/admin/v1/products', { headers: admin, json: { name: 'Editor' } }));
    productKey = String(product['product_key']);
    secret = { 'product-secret-key': String(product['secret']) };
    licenseKey = await issue();
  });
  afterAll(() => http[Symbol.asyncDispose]());

  async function issue(more: Data = {}): Promise<string> {
    const json = { product_key: productKey, buyer_email: 'buyer@example.com', ...more };
    const purchase = data(await http.post('/admin/v1/purchases', { headers: admin, json }));
    return String((purchase['license'] as Data)['license_key']);
  }
  const verify = (key: string, headers: RequestOptions['headers'] = secret): Promise<HttpResponse> =>
    http.get(`/api/v2/license/verify?license_key=${encodeURIComponent(key)}`, { headers });
  const change = (verb: string, key: string): Promise<HttpResponse> =>
    http.put(`/api/v2/license/${verb}`, { headers: secret, form: { license_key: key } });
  const createCoupon = (form: RequestOptions['form'], headers = {}): Promise<HttpResponse> =>
    http.post('/api/v2/coupons', { headers: { ...seller, ...headers }, form: form ?? {} });
  let codes = 0;
  const freshCode = (): string => `${listener}-${(codes += 1)}`;

  describe('license keys', () => {
    test('a key is verified with the product secret and shown with all six fields', async () => {
      const answer = await verify(licenseKey);
      expect(answer.status).toBe(200);
      expect(data(answer)).toEqual({
        license_key: licenseKey,
        enabled: true,
        product_link: productKey,
        buyer_email: 'buyer@example.com',
        uses: 0,
        date: expect.stringMatching(datetime),
      });
      expect(answer.headers['latchkey-freshness']).toBe('authoritative');
      expect(answer.headers).not.toHaveProperty('age');
    });

    test('a generated key has four groups of five characters without look-alikes', () => {
      expect(licenseKey).toMatch(/^[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}$/);
    });

    test('a key is found despite surrounding spaces, and in any letter case', async () => {
      expect(data(await verify(`  ${licenseKey.toLowerCase()}\t`))['license_key']).toBe(licenseKey);
      const padded = await change('enable', ` ${licenseKey.toLowerCase()} `);
      expect(data(padded)['license_key']).toBe(licenseKey);
    });

    test('an imported key of another format is found only in its exact spelling', async () => {
      const imported = await issue({ license_key: `Old Key/${listener} é` });
      expect(data(await verify(imported))['license_key']).toBe(`Old Key/${listener} é`);
      expect(problem(await verify(imported.toUpperCase())).code).toBe('license_not_found');
    });

    test('a key of 1,024 characters is issued, imported, verified, used, shown and listed', async () => {
      const long = `${listener}-${'K'.repeat(1_024)}`.slice(0, 1_024);
      expect(await issue({ license_key: long })).toBe(long);
      expect(data(await verify(long))['license_key']).toBe(long);
      expect(data(await change('usage', long))['uses']).toBe(1);
      const shown = await http.get(`/admin/v1/licenses/${long}`, { headers: admin });
      expect(data(shown)).toMatchObject({ license: { license_key: long, uses: 1 } });
      const next = /<([^>]*)>/.exec(
        String((await http.get('/admin/v1/licenses?limit=1', { headers: admin })).headers['link']),
      )?.[1];
      expect((await http.get(String(next), { headers: admin })).status).toBe(200);
      const row = { license_key: `I${long.slice(1)}`, buyer_email: 'b@example.com' };
      const json = { product_key: productKey, licenses: [row] };
      const imported = await http.post('/admin/v1/licenses/import', { headers: admin, json });
      expect(data(imported)).toMatchObject({ imported: 1, rejected: [] });
      // Texts that repeat themselves are compressed in an index of PostgreSQL.
      const letters = Array.from(
        { length: 512 },
        (_, index) => 0x20000 + ((index * 7_919 + listener.length) % 40_000),
      );
      const widest = String.fromCodePoint(...letters);
      expect(await issue({ license_key: widest })).toBe(widest);
      expect(data(await change('usage', widest))['uses']).toBe(1);
    });

    test('a key is unique in the whole authority', async () => {
      const json = { product_key: productKey, buyer_email: 'b@example.com', license_key: licenseKey };
      const answer = await http.post('/admin/v1/purchases', { headers: admin, json });
      expect([answer.status, problem(answer).code]).toEqual([409, 'license_key_taken']);
    });

    test('uses go up and down by one and never below 0', async () => {
      const key = await issue();
      expect(data(await change('usage', key))['uses']).toBe(1);
      expect(data(await change('usage', key))['uses']).toBe(2);
      expect(data(await change('decrease', key))['uses']).toBe(1);
      expect(data(await change('decrease', key))['uses']).toBe(0);
      const atZero = await change('decrease', key);
      expect([atZero.status, data(atZero)['uses']]).toEqual([200, 0]);
    });

    test('disabling a disabled key and enabling an enabled key changes nothing', async () => {
      const key = await issue();
      for (const [verb, enabled] of [
        ['disable', false],
        ['disable', false],
        ['enable', true],
        ['enable', true],
      ] as const) {
        const answer = await change(verb, key);
        expect([answer.status, data(answer)['enabled']]).toEqual([200, enabled]);
        expect(data(await verify(key))['enabled']).toBe(enabled);
      }
    });

    test('a use of a disabled key counts', async () => {
      const key = await issue();
      await change('disable', key);
      expect(data(await change('usage', key))).toMatchObject({ uses: 1, enabled: false });
    });

    test('a refund disables the key', async () => {
      const json = { product_key: productKey, buyer_email: 'b@example.com' };
      const purchase = data(await http.post('/admin/v1/purchases', { headers: admin, json }));
      const refund = await http.post(`/admin/v1/purchases/${String(purchase['purchase_id'])}/refund`, {
        headers: admin,
      });
      expect(refund.status).toBe(200);
      expect(data(refund)).toMatchObject({ refunded: true, license: { enabled: false } });
    });

    test('the key of another product is not found, like a key that does not exist', async () => {
      const other = data(await http.post('/admin/v1/products', { headers: admin, json: { name: 'Other' } }));
      const headers = { 'product-secret-key': String(other['secret']) };
      const { request_id: _, ...foreign } = (await verify(licenseKey, headers)).body as Data;
      const { request_id: __, ...unknown } = (await verify('NO-SUCH-KEY', headers)).body as Data;
      expect(foreign).toEqual(unknown);
      expect(foreign).toMatchObject({ status: 404, code: 'license_not_found' });
    });

    test('an overlong key is not found, and an empty or missing key is invalid', async () => {
      expect(problem(await verify('K'.repeat(2_000))).code).toBe('license_not_found');
      expect(problem(await change('usage', 'K'.repeat(2_000))).code).toBe('license_not_found');
      for (const query of ['', '?license_key=', '?license_key=%20', '?other=1']) {
        const answer = await http.get(`/api/v2/license/verify${query}`, { headers: secret });
        expect([answer.status, problem(answer).faults]).toEqual([422, ['license_key:required']]);
      }
      for (const sent of [{}, { form: {} }, { form: { license_key: '' } }, { json: {} }]) {
        const answer = await http.put('/api/v2/license/usage', { headers: secret, ...sent });
        expect([answer.status, problem(answer).faults]).toEqual([422, ['license_key:required']]);
      }
    });

    test('a change reads its license key only from the body, and a verify only from the query', async () => {
      const inQuery = await http.put(`/api/v2/license/usage?license_key=${licenseKey}`, { headers: secret });
      expect(problem(inQuery).faults).toEqual(['license_key:required']);
    });

    test('unknown parameters of license operations are ignored', async () => {
      const answer = await http.put('/api/v2/license/enable', {
        headers: secret,
        form: { license_key: licenseKey, machine: 'a', extra: '' },
      });
      expect(answer.status).toBe(200);
    });
  });

  describe('bodies', () => {
    const put = (type: string, body: string, headers = {}): Promise<HttpResponse> =>
      http.put('/api/v2/license/enable', { headers: { ...secret, 'content-type': type, ...headers }, body });

    test('a form and JSON are read the same way, with or without a charset', async () => {
      const form = `license_key=${licenseKey}`;
      const json = JSON.stringify({ license_key: licenseKey });
      expect((await put('application/x-www-form-urlencoded', form)).status).toBe(200);
      expect((await put('application/x-www-form-urlencoded; charset=UTF-8', form)).status).toBe(200);
      expect((await put('application/x-www-form-urlencoded; charset=us-ascii', form)).status).toBe(200);
      expect((await put('application/json', json)).status).toBe(200);
      expect((await put('application/json; charset=utf8', json)).status).toBe(200);
      expect((await put('Application/JSON;charset="utf-8"', json)).status).toBe(200);
    });

    test.each([
      ['text/plain', 'license_key=x', {}],
      ['multipart/form-data; boundary=x', '--x--', {}],
      ['application/json; charset=utf-16', '{}', {}],
      ['nonsense', 'x', {}],
      ['application/json', '{}', { 'content-encoding': 'gzip' }],
      ['application/x-www-form-urlencoded', 'a=b', { 'content-encoding': 'identity' }],
    ])('a body of type %s is not supported', async (type, body, headers) => {
      const answer = await put(type, body, headers);
      expect([answer.status, problem(answer).code]).toEqual([415, 'unsupported_media_type']);
    });

    test('a body without a content type is not supported', async () => {
      const answer = await http.put('/api/v2/license/enable', { headers: secret, body: 'license_key=x' });
      expect(problem(answer).code).toBe('unsupported_media_type');
    });

    test.each([
      ['application/x-www-form-urlencoded', 'license_key=%zz'],
      ['application/x-www-form-urlencoded', 'license_key=%'],
      ['application/x-www-form-urlencoded', 'license_key=%ff%fe'],
      ['application/json', '{"license_key":'],
      ['application/json', '["license_key"]'],
      ['application/json', '"license_key"'],
      ['application/json', 'null'],
    ])('an unreadable body of type %s is refused: %s', async (type, body) => {
      const answer = await put(type, body);
      expect([answer.status, problem(answer).code]).toEqual([400, 'malformed_body']);
    });

    test.each(['application/x-www-form-urlencoded', 'application/json'])(
      'an empty body of type %s counts as a body without parameters',
      async (type) => {
        const answer = await put(type, '');
        expect(problem(answer)).toEqual({ code: 'parameters_invalid', faults: ['license_key:required'] });
      },
    );

    test.each([
      ['application/x-www-form-urlencoded', 'license_key=A&license_key=B'],
      ['application/x-www-form-urlencoded', 'license_key=A&license%5Fkey=A'],
      ['application/x-www-form-urlencoded', 'license_key=A&x=&x='],
      ['application/json', '{"license_key":"A","license_key":"B"}'],
      ['application/json', String.raw`{"license_key":"A","license\u005fkey":"B"}`],
    ])('a repeated parameter is refused: %s %s', async (type, body) => {
      const answer = await put(type, body);
      expect([answer.status, problem(answer).code]).toEqual([400, 'duplicate_parameter']);
    });

    test('the same member name at another level of a JSON body is not a duplicate', async () => {
      const body = JSON.stringify({
        license_key: licenseKey,
        note: { license_key: '":{', also: ['license_key'] },
      });
      expect((await put('application/json', body)).status).toBe(200);
    });

    test('a duplicate query parameter is refused', async () => {
      const answer = await http.get('/api/v2/license/verify?license_key=A&license_key=B', {
        headers: secret,
      });
      expect([answer.status, problem(answer).code]).toEqual([400, 'duplicate_parameter']);
    });

    test('more than 32 parameters are refused', async () => {
      const others = Array.from({ length: 31 }, (_, index) => [`p${index}`, '1']);
      const most = { ...Object.fromEntries(others), license_key: 'NONE' };
      const many = { ...most, more: '1' };
      for (const [sent, told] of [
        [{ form: most }, [404, 'license_not_found']],
        [{ json: most }, [404, 'license_not_found']],
        [{ form: many }, [400, 'malformed_request']],
        [{ json: many }, [400, 'malformed_request']],
      ] as const) {
        const answer = await http.put('/api/v2/license/enable', { headers: secret, ...sent });
        expect([answer.status, problem(answer).code]).toEqual(told);
      }
    });

    test('a body of more than 16 KiB is refused', async () => {
      const answer = await put('application/x-www-form-urlencoded', `license_key=${'x'.repeat(16_384)}`);
      expect([answer.status, problem(answer).code]).toEqual([413, 'body_too_large']);
    });

    test('an Idempotency-Key on a read is ignored', async () => {
      const headers = { ...secret, 'idempotency-key': '"' };
      const answer = await http.get(`/api/v2/license/verify?license_key=${licenseKey}`, { headers });
      expect(answer.status).toBe(200);
    });

    test('a JSON null counts as a missing parameter', async () => {
      const answer = await put('application/json', '{"license_key":null}');
      expect(problem(answer).faults).toEqual(['license_key:required']);
    });
  });

  describe('credentials', () => {
    const usage = (headers: Record<string, string | string[]>): Promise<HttpResponse> =>
      http.put('/api/v2/license/enable', { headers, form: { license_key: licenseKey } });
    const coupons = (headers: Record<string, string | string[]>): Promise<HttpResponse> =>
      http.get('/api/v2/coupons', { headers });

    test('a response to a request without a credential says how to send one', async () => {
      for (const headers of [{}, seller, { 'product-secret-key': '' }, { authorization: 'Basic eDp5' }]) {
        const answer = await usage(headers);
        expect([answer.status, problem(answer).code]).toEqual([401, 'credentials_missing']);
        expect(answer.headers['www-authenticate']).toBe('Bearer realm="latchkey"');
      }
    });

    test('a wrong credential is refused', async () => {
      for (const headers of [{ 'product-secret-key': 'wrong' }, { authorization: 'Bearer wrong' }]) {
        const answer = await usage(headers);
        expect([answer.status, problem(answer).code]).toEqual([401, 'credentials_invalid']);
        expect(answer.headers['www-authenticate']).toMatch(/^Bearer .*error="invalid_token"/);
      }
    });

    test('a product secret is not accepted as an API key, and an API key not as a product secret', async () => {
      expect(problem(await coupons({ 'service-api-key': secret['product-secret-key'] })).code).toBe(
        'credentials_invalid',
      );
      expect(problem(await usage({ 'product-secret-key': apiKey })).code).toBe('credentials_invalid');
    });

    test('if both credential headers are sent, the header of the endpoint counts', async () => {
      expect((await usage({ ...seller, ...secret })).status).toBe(200);
      expect((await usage({ 'service-api-key': 'wrong', ...secret })).status).toBe(200);
      expect((await coupons({ ...seller, 'product-secret-key': 'wrong' })).status).toBe(200);
    });

    test('a token is accepted as Bearer and in either credential header', async () => {
      expect((await usage(admin)).status).toBe(200);
      expect((await usage({ 'product-secret-key': adminToken })).status).toBe(200);
      expect((await coupons({ 'service-api-key': adminToken })).status).toBe(200);
      for (const headers of [
        admin,
        { authorization: `bearer  ${adminToken} ` },
        { 'service-api-key': adminToken },
        { 'product-secret-key': adminToken },
      ]) {
        expect((await http.get('/statusz', { headers })).status).toBe(200);
      }
    });

    test('the same credential in two equal header lines is one credential', async () => {
      for (const [name, value] of Object.entries({ ...secret, ...admin })) {
        expect((await usage({ [name]: [value, value] })).status).toBe(200);
      }
    });

    test('a Bearer token together with a credential header, or two different lines of a header, are malformed', async () => {
      const two = { 'product-secret-key': [secret['product-secret-key'], 'another-secret'] };
      for (const headers of [{ ...secret, ...admin }, two]) {
        const answer = await usage(headers);
        expect([answer.status, problem(answer).code]).toEqual([400, 'malformed_request']);
      }
      const ambiguous = await http.get('/statusz', { headers: { ...seller, ...secret } });
      expect(problem(ambiguous).code).toBe('malformed_request');
    });

    test('the response to a missing scope names the scope', async () => {
      const answer = await http.get('/statusz', { headers: seller });
      expect([answer.status, problem(answer).code]).toEqual([403, 'scope_missing']);
      expect(String((answer.body as Data)['detail'])).toContain('ops');
    });

    test('a rotated API key stops working at once', async () => {
      const account = data(await http.post('/admin/v1/accounts', { headers: admin, json: { name: 'A' } }));
      const rotate = await http.post(`/admin/v1/accounts/${String(account['account_id'])}/rotate-key`, {
        headers: admin,
      });
      expect(problem(await coupons({ 'service-api-key': String(account['api_key']) })).code).toBe(
        'credentials_invalid',
      );
      expect((await coupons({ 'service-api-key': String(data(rotate)['api_key']) })).status).toBe(200);
    });
  });

  describe('the creation of a coupon', () => {
    test('creating a coupon answers 201 with its location and all twelve fields', async () => {
      const code = freshCode();
      const answer = await createCoupon({ coupon_type: 'multi', percent_off: '20', code, notes: '' });
      expect(answer.status).toBe(201);
      const coupon = data(answer);
      expect(coupon).toEqual({
        id: expect.any(Number),
        coupon_type: 'multi',
        percent_off: 20,
        amount_off: null,
        code,
        start_date: null,
        end_date: null,
        product_key: null,
        collection_id: null,
        minimum_purchase_amount: null,
        usage_limit: null,
        notes: null,
      });
      expect(answer.headers['location']).toBe(`/api/v2/coupons/${String(coupon['id'])}`);
      expect(answer.headers['latchkey-freshness']).toBe('authoritative');
      const read = await http.get(answer.headers['location'] ?? '', { headers: seller });
      expect([read.status, data(read)]).toEqual([200, coupon]);
    });

    test('a form and JSON create the same coupon', async () => {
      const sent = {
        coupon_type: 'single',
        percent_off: 12.5,
        product_key: productKey,
        usage_limit: 3,
        minimum_purchase_amount: 1000,
        start_date: '2026-01-01T02:00:00+02:00',
        end_date: '2026-06-01T00:00:00.5Z',
        notes: 'für Freunde & Familie',
      };
      const form = { ...sent, percent_off: '12.5', usage_limit: '3', minimum_purchase_amount: '1000' };
      const ofForm = data(await createCoupon({ ...form, code: freshCode() }));
      const json = { ...sent, usage_limit: '3', collection_id: null, code: freshCode() };
      const ofJson = data(await http.post('/api/v2/coupons', { headers: seller, json }));
      expect(ofForm).toMatchObject({
        ...sent,
        start_date: '2026-01-01T00:00:00+00:00',
        end_date: '2026-06-01T00:00:00+00:00',
      });
      expect({ ...ofForm, id: 0, code: '' }).toEqual({ ...ofJson, id: 0, code: '' });
    });

    test('a coupon of a collection contains its id', async () => {
      const json = { name: 'All', product_keys: [productKey] };
      const collection = data(await http.post('/admin/v1/collections', { headers: admin, json }));
      const id = String(collection['collection_id']);
      const coupon = { coupon_type: 'collection', amount_off: '500', collection_id: id, code: freshCode() };
      expect(data(await createCoupon(coupon))).toMatchObject({ collection_id: id, amount_off: 500 });
    });

    test.each<[string, Record<string, string>, string[]]>([
      ['both discounts', { percent_off: '5', amount_off: '5' }, ['amount_off:excluded']],
      ['neither discount', {}, ['percent_off:required']],
      ['a percentage of 0', { percent_off: '0' }, ['percent_off:out_of_range']],
      ['a percentage above 100', { percent_off: '100.01' }, ['percent_off:out_of_range']],
      [
        'a percentage that rounds to 100',
        { percent_off: `100.${'0'.repeat(14)}1` },
        ['percent_off:out_of_range'],
      ],
      [
        'a percentage that rounds up to 100',
        { percent_off: `99.${'9'.repeat(20)}` },
        ['percent_off:out_of_range'],
      ],
      ['a hexadecimal percentage', { percent_off: '0x10' }, ['percent_off:not_a_number']],
      ['a percentage with an exponent', { percent_off: '1e1' }, ['percent_off:not_a_number']],
      ['NaN', { percent_off: 'NaN' }, ['percent_off:not_a_number']],
      ['Infinity', { percent_off: 'Infinity' }, ['percent_off:not_a_number']],
      ['an amount of 0', { amount_off: '0' }, ['amount_off:out_of_range']],
      ['a negative amount', { amount_off: '-5' }, ['amount_off:out_of_range']],
      ['a fraction of a cent', { amount_off: '5.5' }, ['amount_off:not_an_integer']],
      ['an amount beyond 2^53', { amount_off: '9007199254740993' }, ['amount_off:not_an_integer']],
      ['an unknown type', { amount_off: '5', coupon_type: 'all' }, ['coupon_type:not_one_of']],
      ['no coupon type', { amount_off: '5', coupon_type: '' }, ['coupon_type:required']],
      ['no code', { amount_off: '5', code: '' }, ['code:required']],
      ['white space in the code', { amount_off: '5', code: 'A B' }, ['code:malformed']],
      ['a control character in the code', { amount_off: '5', code: 'A\u0007B' }, ['code:malformed']],
      ['a code of 65 characters', { amount_off: '5', code: 'A'.repeat(65) }, ['code:malformed']],
      [
        'no product for a coupon of one product',
        { amount_off: '5', coupon_type: 'single' },
        ['product_key:required'],
      ],
      [
        'a product for a coupon of all products',
        { amount_off: '5', product_key: 'P' },
        ['product_key:excluded'],
      ],
      [
        'a collection for a single one',
        { amount_off: '5', coupon_type: 'single', collection_id: 'C' },
        ['collection_id:excluded', 'product_key:required'],
      ],
      [
        'no collection for one of a collection',
        { amount_off: '5', coupon_type: 'collection' },
        ['collection_id:required'],
      ],
      [
        'a product that does not exist',
        { amount_off: '5', coupon_type: 'single', product_key: 'nope' },
        ['product_key:product_not_found'],
      ],
      [
        'a collection that does not exist',
        { amount_off: '5', coupon_type: 'collection', collection_id: 'nope' },
        ['collection_id:collection_not_found'],
      ],
      [
        'a day that does not exist',
        { amount_off: '5', end_date: '2026-02-30T00:00:00Z' },
        ['end_date:not_a_datetime'],
      ],
      ['a day without a time', { amount_off: '5', start_date: '2026-02-03' }, ['start_date:not_a_datetime']],
      [
        'an end before the start',
        { amount_off: '5', start_date: '2026-02-03T00:00:00Z', end_date: '2026-02-03T00:00:00Z' },
        ['end_date:not_after_start'],
      ],
      [
        'a minimum of 0',
        { amount_off: '5', minimum_purchase_amount: '0' },
        ['minimum_purchase_amount:out_of_range'],
      ],
      ['a limit of nothing', { amount_off: '5', usage_limit: '0' }, ['usage_limit:out_of_range']],
      ['a misspelt parameter', { amount_off: '5', usage_limits: '3' }, ['usage_limits:unknown']],
    ])('creating a coupon with %s is refused', async (_, sent, faults) => {
      const answer = await createCoupon({ coupon_type: 'multi', code: freshCode(), ...sent });
      expect([answer.status, problem(answer)]).toEqual([422, { code: 'parameters_invalid', faults }]);
    });

    test('creating a coupon reports all errors at once, including errors of the catalogue', async () => {
      const answer = await createCoupon({
        coupon_type: 'single',
        product_key: 'nope',
        percent_off: 'much',
        code: '',
        end_date: 'soon',
        usage_limit: '0',
        ['x'.repeat(100)]: '1',
      });
      expect(problem(answer).faults).toEqual([
        'code:required',
        'end_date:not_a_datetime',
        'percent_off:not_a_number',
        'product_key:product_not_found',
        'usage_limit:out_of_range',
        `${'x'.repeat(64)}:unknown`,
      ]);
    });

    test('an error never repeats a value of the request', async () => {
      const answer = await createCoupon({
        coupon_type: 'CANARY',
        code: 'CANARY WORD',
        percent_off: 'CANARY',
      });
      expect(JSON.stringify(answer.body)).not.toContain('CANARY');
    });

    test('a coupon code is unique without regard to case, and is stored as it was sent', async () => {
      const code = `Summer-${listener}`;
      expect(data(await createCoupon({ coupon_type: 'multi', percent_off: '5', code }))['code']).toBe(code);
      const again = await createCoupon({ coupon_type: 'multi', percent_off: '5', code: code.toUpperCase() });
      expect([again.status, problem(again).code]).toEqual([409, 'coupon_code_taken']);
    });

    test('a coupon for a product with a recurring price is refused', async () => {
      const json = { name: 'Subscription', recurring: true };
      const product = data(await http.post('/admin/v1/products', { headers: admin, json }));
      const answer = await createCoupon({
        coupon_type: 'single',
        percent_off: '5',
        product_key: String(product['product_key']),
        code: freshCode(),
      });
      expect([answer.status, problem(answer)]).toEqual([
        422,
        { code: 'product_is_recurring', faults: ['product_key:product_is_recurring'] },
      ]);
    });
  });

  describe('the coupon list', () => {
    test('the coupon list is ascending, has the total, and links the next page if there is one', async () => {
      const account = data(await http.post('/admin/v1/accounts', { headers: admin, json: { name: 'L' } }));
      const headers = { 'service-api-key': String(account['api_key']) };
      for (const code of ['C', 'B', 'A']) {
        await http.post('/api/v2/coupons', { headers, json: { coupon_type: 'multi', amount_off: 1, code } });
      }
      const first = await http.get('/api/v2/coupons?limit=2&offset=&x=y', { headers });
      const codesOf = (answer: HttpResponse): unknown[] =>
        (data(answer)['coupons'] as Data[]).map((coupon) => coupon['code']);
      expect(codesOf(first)).toEqual(['C', 'B']);
      expect(first.headers['x-total-count']).toBe('3');
      const next = /^<([^>]+)>; rel="next"$/.exec(first.headers['link'] ?? '')?.[1] ?? '';
      const last = await http.get(next, { headers });
      expect(codesOf(last)).toEqual(['A']);
      expect(last.headers['x-total-count']).toBe('3');
      expect(last.headers).not.toHaveProperty('link');
      expect(codesOf(await http.get('/api/v2/coupons?offset=3', { headers }))).toEqual([]);
    });

    test('the coupon list has ten coupons by default', async () => {
      for (let index = 0; index < 11; index += 1) {
        await createCoupon({ coupon_type: 'multi', amount_off: '1', code: freshCode() });
      }
      const answer = await http.get('/api/v2/coupons', { headers: seller });
      expect(data(answer)['coupons']).toHaveLength(10);
    });

    test.each([
      ['limit=0', 'limit:out_of_range'],
      ['limit=101', 'limit:out_of_range'],
      ['limit=ten', 'limit:not_an_integer'],
      ['limit=1.5', 'limit:not_an_integer'],
      ['limit=%2B5', 'limit:not_an_integer'],
      ['offset=-1', 'offset:out_of_range'],
      ['offset=99999999999999999999', 'offset:not_an_integer'],
    ])('the coupon list refuses %s and does not clamp it', async (query, fault) => {
      const answer = await http.get(`/api/v2/coupons?${query}`, { headers: seller });
      expect([answer.status, problem(answer).faults]).toEqual([422, [fault]]);
    });

    test.each(['999999', '0', '-1', 'abc', '1.0', '0x1', '99999999999999999999'])(
      'the coupon id %j is not found',
      async (id) => {
        const answer = await http.get(`/api/v2/coupons/${id}`, { headers: seller });
        expect([answer.status, problem(answer).code]).toEqual([404, 'coupon_not_found']);
      },
    );

    test('a coupon of another account is not found', async () => {
      const made = data(await createCoupon({ coupon_type: 'multi', amount_off: '1', code: freshCode() }));
      const account = data(await http.post('/admin/v1/accounts', { headers: admin, json: { name: 'O' } }));
      const answer = await http.get(`/api/v2/coupons/${String(made['id'])}`, {
        headers: { 'service-api-key': String(account['api_key']) },
      });
      expect(problem(answer).code).toBe('coupon_not_found');
    });
  });

  describe('idempotency keys', () => {
    const use = (key: string, idempotencyKey: string | string[]): Promise<HttpResponse> =>
      http.put('/api/v2/license/usage', {
        headers: { ...secret, 'idempotency-key': idempotencyKey },
        form: { license_key: key },
      });

    test('a request repeated under its idempotency key counts once, with or without quotes, as a form or JSON', async () => {
      const key = await issue();
      const first = await use(key, `"once-${listener}"`);
      const second = await use(key, `once-${listener}`);
      const third = await http.put('/api/v2/license/usage', {
        headers: { ...secret, 'idempotency-key': `once-${listener}` },
        json: { license_key: key.toLowerCase() },
      });
      expect(first.status).toBe(200);
      for (const again of [second, third]) expect([again.status, again.body]).toEqual([200, first.body]);
      expect(data(await verify(key))['uses']).toBe(1);
    });

    test('a repeated request gets the stored status, body and location', async () => {
      const headers = { 'idempotency-key': `coupon-${listener}` };
      const form = { coupon_type: 'multi', amount_off: '1', code: freshCode() };
      const first = await createCoupon(form, headers);
      const second = await createCoupon(form, headers);
      expect([second.status, second.headers['location'], second.body]).toEqual([
        201,
        first.headers['location'],
        first.body,
      ]);
    });

    test('another request under a used idempotency key is refused', async () => {
      const key = await issue();
      await use(key, `other-${listener}`);
      const answer = await use(licenseKey, `other-${listener}`);
      expect([answer.status, problem(answer).code]).toEqual([422, 'idempotency_key_reused']);
    });

    test('each credential has its own idempotency keys', async () => {
      const key = await issue();
      await use(key, `mine-${listener}`);
      const answer = await http.put('/api/v2/license/usage', {
        headers: { ...admin, 'idempotency-key': `mine-${listener}` },
        form: { license_key: licenseKey },
      });
      expect(answer.status).toBe(200);
    });

    test('a refusal is not stored under an idempotency key', async () => {
      const later = `LATER-${listener}`;
      expect((await use(later, `refused-${listener}`)).status).toBe(404);
      await issue({ license_key: later });
      expect((await use(later, `refused-${listener}`)).status).toBe(200);
    });

    test('a response that contains a secret is not stored under an idempotency key', async () => {
      const headers = { ...admin, 'idempotency-key': `secret-${listener}` };
      const json = { name: 'Twice' };
      const first = data(await http.post('/admin/v1/products', { headers, json }));
      const second = data(await http.post('/admin/v1/products', { headers, json }));
      expect(first['secret']).not.toBe(second['secret']);
    });

    test.each(['', '""', '"open', 'a b', 'k'.repeat(256), '"é"', '"a";b', ['a', 'b']])(
      'the idempotency key %j is malformed',
      async (key) => {
        const answer = await use(licenseKey, key);
        expect([answer.status, problem(answer).code]).toEqual([400, 'idempotency_key_malformed']);
      },
    );

    test('an unquoted idempotency key with a space is refused with a hint, and accepted in quotes', async () => {
      const spaced = `order 17 ${listener}`;
      const refused = (await use(licenseKey, spaced)).body;
      expect(refused).toMatchObject({
        code: 'idempotency_key_malformed',
        detail: expect.stringContaining('in quotes if it has a space') as string,
      });
      expect((await use(await issue(), `"${spaced}"`)).status).toBe(200);
    });

    test('an idempotency key may have 255 characters', async () => {
      expect((await use(await issue(), `"${listener}${'k'.repeat(255 - listener.length)}"`)).status).toBe(
        200,
      );
    });
  });

  describe('routes', () => {
    test('an unknown path is 404', async () => {
      for (const path of ['/', '/api/v2', '/api/v2/license', '/api/v2/coupons/1/x', '/API/v2/coupons']) {
        const answer = await http.get(path);
        expect([answer.status, problem(answer).code]).toEqual([404, 'route_not_found']);
      }
    });

    test('an unsupported method is 405, and the response lists the supported methods', async () => {
      const answer = await http.delete('/api/v2/coupons');
      expect([answer.status, problem(answer).code]).toEqual([405, 'method_not_allowed']);
      expect(answer.headers['allow']).toBe('POST, GET, HEAD');
      expect((await http.get('/api/v2/license/usage')).headers['allow']).toBe('PUT');
    });

    test('the OpenAPI description needs no credential', async () => {
      const answer = await http.get('/openapi.json');
      expect([answer.status, (answer.body as Data)['openapi']]).toEqual([200, '3.1.0']);
    });
  });
});
