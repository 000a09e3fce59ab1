import { fastify } from 'fastify';
import * as fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { receiveAnyBody } from '../../../src/http/entry/any-body.ts';
import { limits } from '../../support/app/http-app.ts';

const server = fastify();
receiveAnyBody(server, limits, (scope) => {
  scope.post('/', ({ body }) => (body instanceof Map ? [...body] : { refused: String(body) }));
});
afterAll(() => server.close());

type Fields = readonly (readonly [name: string, value: string])[];

async function read(contentType: string, payload: string | Buffer): Promise<unknown> {
  const headers = { 'content-type': contentType };
  return (await server.inject({ method: 'POST', url: '/', headers, payload })).json();
}

function multipart(fields: Fields, boundary: string, head = ''): string {
  const parts = fields.map(
    ([name, value]) =>
      `--${boundary}\r\n${head}Content-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return `${parts.join('')}--${boundary}--\r\n`;
}

test('the fields and files of a form of any browser are read, and empty ones are not', async () => {
  const text = fc.string({ unit: 'binary' }).filter((each) => each !== '');
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 5 }), text, async (values, content) => {
      const form = new FormData();
      for (const [index, value] of values.entries()) form.set(`field${index}`, value);
      form.set('file', new File([content], 'a "name"; name="x".req'));
      form.set('empty', '');
      form.set('nothing', new File([], ''));
      const encoded = new Response(form);
      // Browsers write every line break of a field so.
      const expected = values.map((value, index) => [
        `field${index}`,
        value.toWellFormed().replaceAll(/\r\n|\r|\n/g, '\r\n'),
      ]);
      const body = Buffer.from(await encoded.arrayBuffer());
      expect(await read(encoded.headers.get('content-type') ?? '', body)).toEqual([
        ...expected,
        ['file', await new Blob([content]).text()],
      ]);
    }),
    { numRuns: 30 },
  );
});

test.each([
  ['a boundary of one character', 'x', multipart([['license_key', 'A']], 'x')],
  [
    'a boundary that a replacement would read as a pattern',
    "$'$&",
    multipart([['license_key', 'A']], "$'$&"),
  ],
  ['a text before and after the fields', 'x', `hello\r\n${multipart([['license_key', 'A']], 'x')}bye`],
  ['other headers', 'x', multipart([['license_key', 'A']], 'x', 'X-Other: name="y"\r\n')],
  ['a name without quotes', 'x', multipart([['license_key', 'A']], 'x').replaceAll('"', '')],
])('a multipart form is read with %s', async (_, boundary, body) => {
  expect(await read(`multipart/form-data; boundary="${boundary}"`, body)).toEqual([['license_key', 'A']]);
});

test.each([
  ['nothing in it', ''],
  ['another boundary', multipart([['a', 'b']], 'y')],
  ['no end', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'],
  ['a part without a name', '--x\r\nContent-Disposition: form-data\r\n\r\nb\r\n--x--'],
  ['a part without a body', '--x\r\nContent-Disposition: form-data; name="a"\r\n--x--'],
])('a multipart form with %s is refused', async (_, body) => {
  const refusal = { refused: expect.stringContaining('not multipart/form-data') };
  expect(await read('multipart/form-data; boundary=x', body)).toEqual(refusal);
});

test('a multipart form with too many fields is refused', async () => {
  const fields = Array.from({ length: limits.parameters + 1 }, (_, index) => [String(index), 'a'] as const);
  const refusal = { refused: expect.stringContaining('There are more than 32 parameters.') };
  expect(await read('multipart/form-data; boundary=x', multipart(fields, 'x'))).toEqual(refusal);
});
