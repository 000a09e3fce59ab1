import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { readJson, readPairs } from '../../../src/http/entry/request.ts';
import { ProblemError } from '../../../src/http/problem-error.ts';
import { specification } from '../../../src/http/dialects.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { couponCreation } from '../../../src/wire/coupon.ts';
import { adminToken, openApp, serverOf } from '../../support/app/http-app.ts';

const routes = await routesOf(specification);

const place = { malformed: 'malformed_body', maximum: 32 } as const;

function codeOf(read: () => unknown): string | null {
  try {
    read();
    return null;
  } catch (error) {
    if (error instanceof ProblemError) return error.problem.code;
    throw error;
  }
}

test('no name in a path causes a 500', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const headers = { authorization: `Bearer ${adminToken}` };
  const refusal: unknown = expect.toSatisfy((status: number) => [404, 409, 422].includes(status));
  for (const { method, path } of routes.filter((each) => each.path.includes(':'))) {
    for (const name of ['%00', 'a%00b', '%EF%BF%BF', '%F0%9F%91%A4', '%27%22%5C', '9'.repeat(30), '-0']) {
      const url = path.replace(/:\w+/, name);
      const answer = await server.inject({ method, url, headers });
      expect([method, url, answer.statusCode]).toEqual([method, url, refusal]);
    }
  }
});

const text = fc.string({ unit: 'binary' });

test('a form of any encoder is read correctly, and an empty value counts as missing', () => {
  fc.assert(
    fc.property(fc.dictionary(text, text, { maxKeys: 8 }), (sent) => {
      const read = readPairs(new URLSearchParams(sent).toString(), place);
      expect(Object.fromEntries(read)).toEqual(
        Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== '')),
      );
    }),
  );
});

test('an empty optional member in JSON is not reported as required', () => {
  const read = couponCreation.read(
    readJson('{"coupon_type":"multi","percent_off":5,"code":"A","notes":""}', 32),
  );
  expect(read).toMatchObject({ faults: [{ parameter: 'notes', detail: 'notes must not be empty.' }] });
});

test.each(['A\uD800', '\0', 'A B'])('a coupon code with unstorable characters is refused: %j', (code) => {
  const read = couponCreation.read(
    new Map<string, unknown>([
      ['coupon_type', 'multi'],
      ['percent_off', 5],
      ['code', code],
    ]),
  );
  expect(read).toMatchObject({ ok: false, faults: [{ parameter: 'code', code: 'malformed' }] });
});

test('any text is either read as a form or refused', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '=', '&', '%', '+', '2', 'f', '0', 'é') }),
      (given) => {
        expect([null, 'malformed_body', 'duplicate_parameter']).toContain(
          codeOf(() => readPairs(given, place)),
        );
      },
    ),
  );
});

test('a JSON object is read unchanged with any values, and null counts as missing', () => {
  fc.assert(
    fc.property(fc.dictionary(text, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 8 }), (sent) => {
      const spaced = JSON.stringify(sent, null, 2);
      const expected = Object.entries(JSON.parse(spaced) as object).filter(([, value]) => value !== null);
      expect([...readJson(spaced, 32)]).toEqual(expected);
    }),
  );
});

test('a repeated member is refused at every position', () => {
  const members = fc.uniqueArray(text, { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(members, fc.nat(), fc.nat(), fc.jsonValue(), (names, first, at, value) => {
      const name = names[first % names.length] ?? '';
      const all = names.toSpliced(at % (names.length + 1), 0, name);
      const body = `{${all.map((each) => `${JSON.stringify(each)}:${JSON.stringify(value)}`).join(',')}}`;
      expect(codeOf(() => readJson(body, 32))).toBe('duplicate_parameter');
    }),
  );
});

test('no body and no query causes a 500', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const names = [
    'license_key',
    'code',
    'coupon_type',
    'amount_off',
    'percent_off',
    'end_date',
    'name',
    'limit',
  ];
  const values = fc.oneof(
    fc.jsonValue({ maxDepth: 1 }),
    fc.constantFrom('multi', '5', 5, 1e308, -0, '\0', '\ud800', '9999-12-31T23:59:59-12:00', 2 ** 53),
  );
  const sent = fc.dictionary(fc.constantFrom(...names), values);
  const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
  const asForm = (given: object): string =>
    new URLSearchParams(Object.entries(given).map(([name, value]) => [name, written(value)])).toString();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), sent, fc.boolean(), async (route, given, json) => {
      const answer = await server.inject({
        method: route.method,
        url: `${route.path.replace(/:\w+/, '1')}?${route.method === 'GET' ? asForm(given) : ''}`,
        headers: {
          authorization: `Bearer ${adminToken}`,
          'content-type': json ? 'application/json' : 'application/x-www-form-urlencoded',
        },
        ...(route.method !== 'GET' && { payload: json ? JSON.stringify(given) : asForm(given) }),
      });
      expect(answer.statusCode).toBeLessThan(500);
    }),
    { numRuns: 400 },
  );
});
