import { randomBytes } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LicenseKeyMask } from '../../../../src/features/console/http/masking.ts';
import { buildOperation } from '../../../support/builders/operation-builders.ts';
import { fromPage, openConsole, operator, type ConsoleApp } from '../console-app.ts';

const generated = 'ABCDE-FGHJK-LMNPQ-RSTUV';
const random = { bytes: (count: number) => new Uint8Array(randomBytes(count)) };

/** Masks a JSON body as the response to a request with these parameters. */
function masked(mask: LicenseKeyMask, body: unknown, query: Record<string, string> = {}): unknown {
  const reply = {
    getHeader: (name: string) => (name === 'Content-Type' ? 'application/json; charset=utf-8' : undefined),
    request: { params: {}, state: { query: new Map(Object.entries(query)) } },
  } as unknown as FastifyReply;
  return JSON.parse(String(mask.maskReply(reply, JSON.stringify(body)))) as unknown;
}

describe('a masked license key', () => {
  const mask = new LicenseKeyMask(random);

  test.each([
    [generated, '…STUV'],
    ['KEY', '…Y'],
    ['A1', '…'],
    ['a key of 16 char', '…char'],
    ['ключ-ключ-ключ', '…ключ'],
    ['🔑🔑🔑', '…🔑'],
    ['x'.repeat(100), '…xxxx'],
    ['with~tilde~in~it', '…n~it'],
  ])('the masked form of %s shows at most its end, and can be read back', (key, shown) => {
    const text = mask.mask(key);
    expect(text.startsWith(`${shown}~`)).toBe(true);
    expect(mask.mask(key)).toBe(text);
    expect(mask.unmask(text)).toBe(key);
    const reference = text.slice(text.lastIndexOf('~') + 1);
    expect(reference).toMatch(/^[\w-]+$/);
    expect(mask.unmask(reference)).toBe(key);
    expect(text.length).toBeLessThan(600);
  });

  test('another process cannot read a masked key, and a changed reference is no key', () => {
    const text = mask.mask(generated);
    expect(new LicenseKeyMask(random).unmask(text)).toBe(text);
    for (let index = text.indexOf('~') + 1; index < text.length; index += 1) {
      const changed = `${text.slice(0, index)}${text[index] === 'A' ? 'B' : 'A'}${text.slice(index + 1)}`;
      // The last character of base64 may have bits that mean nothing.
      expect([changed, generated]).toContain(mask.unmask(changed));
    }
  });

  test.each(['', '~', 'SPRING', 'buyer@example.com', generated, 'a'.repeat(100), 'x~y'])(
    'the text %j is no masked key and stays',
    (text) => {
      expect(mask.unmask(text)).toBe(text);
    },
  );
});

describe('the license keys of a response', () => {
  const mask = new LicenseKeyMask(random);

  test('a key is masked as a member, in a list, in a sentence, in an address and in a command', () => {
    const key = 'MY OWN/KEY';
    expect(
      masked(mask, {
        data: {
          licenses: [{ license_key: key, uses: 1, buyer_email: 'buyer@example.com' }],
          subject: key,
          last_error: `no such key: ${key}`,
          page: `licenses/${encodeURIComponent(key)}`,
          at: '2026-02-22T11:23:05+00:00',
        },
      }),
    ).toEqual({
      data: {
        licenses: [{ license_key: mask.mask(key), uses: 1, buyer_email: 'buyer@example.com' }],
        subject: mask.mask(key),
        last_error: 'no such key: …KEY',
        page: `licenses/${mask.mask(key)}`,
        at: '2026-02-22T11:23:05+00:00',
      },
    });
  });

  test('a key in the generated format is masked in every text, in any letter case', () => {
    expect(masked(mask, { detail: `The key ${generated.toLowerCase()} is unknown.` })).toEqual({
      detail: 'The key …STUV is unknown.',
    });
    expect(masked(mask, { page: `licenses/${generated}` })).toEqual({
      page: `licenses/${mask.mask(generated)}`,
    });
  });

  test('the key behind the masked key of a request is masked in the response', () => {
    const key = 'an own key';
    expect(masked(mask, { detail: `There is no ${key}.` }, { license_key: mask.mask(key) })).toEqual({
      detail: 'There is no …key.',
    });
  });

  test('a short key is masked as a word only, and not in a time', () => {
    expect(
      masked(mask, {
        license_key: '22',
        at: '2026-02-22T11:23:05+00:00',
        text: 'The key 22 has 220 uses.',
      }),
    ).toEqual({
      license_key: mask.mask('22'),
      at: '2026-02-22T11:23:05+00:00',
      text: 'The key … has 220 uses.',
    });
  });

  test('a key with the characters of regular expressions is masked', () => {
    const key = '(.*)+[a-z]$^|?\\';
    expect(masked(mask, { license_key: key, text: `x ${key} y` })).toEqual({
      license_key: mask.mask(key),
      text: 'x …^|?\\ y',
    });
  });

  test('a body that is not JSON is not sent', () => {
    const getHeader = (name: string) => (name === 'Content-Type' ? 'text/csv' : undefined);
    const reply = { getHeader } as unknown as FastifyReply;
    expect(() => mask.maskReply(reply, 'license_key\nKEY')).toThrow('a read-only session gets JSON only');
  });
});

describe('a read-only session', () => {
  let app: ConsoleApp;
  let readOnly: { authorization: string };
  let admin: { authorization: string };
  const keys = ['AAAAA-BBBBB-CCCCC-DDDDD', 'own key/1', 'own key/2', 'own key/3'];

  beforeAll(async () => {
    app = await openConsole();
    await post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR' });
    for (const licenseKey of keys) {
      await post('/admin/v1/purchases', {
        product_key: 'EDITOR',
        buyer_email: 'buyer@example.com',
        license_key: licenseKey,
      });
    }
    readOnly = { authorization: `Bearer ${await app.signIn()}` };
    admin = { authorization: `Bearer ${await app.signIn(true)}` };
  });
  afterAll(() => app[Symbol.asyncDispose]());

  async function post(url: string, payload: object): Promise<void> {
    const { statusCode } = await app.server.inject({ method: 'POST', url, payload, headers: operator });
    expect(statusCode).toBe(201);
  }

  test('a cursor of its own making is refused, because it would show whether a key comes before a text', async () => {
    const cursor = Buffer.from(JSON.stringify(['licenses', 'M'])).toString('base64url');
    const url = `/admin/v1/licenses?buyer_email=buyer@example.com&cursor=${cursor}`;
    expect((await get(url, admin)).statusCode).toBe(200);
    expect((await get(url)).json()).toMatchObject({ errors: [{ code: 'invalid_cursor' }] });
  });

  type Listed = { data: { licenses: { license_key: string }[] } };

  const get = async (url: string, headers: object = readOnly) =>
    await app.server.inject({ url, headers: { ...fromPage, ...headers } });

  function expectNoKey(text: string): void {
    for (const key of keys) {
      expect(text).not.toContain(key);
      expect(text).not.toContain(encodeURIComponent(key));
      expect(text).not.toContain(Buffer.from(key).toString('base64').replace(/=+$/, ''));
    }
  }

  test('every list and every page that reads has no whole license key', async () => {
    const { data } = (await get('/admin/v1/purchases', admin)).json<{
      data: { purchases: { purchase_id: string }[] };
    }>();
    for (const url of [
      '/admin/v1/licenses',
      '/admin/v1/purchases',
      `/admin/v1/purchases/${data.purchases[0]?.purchase_id}`,
      '/admin/v1/audit',
      '/admin/v1/activations',
      '/statusz',
    ]) {
      const { statusCode, body, headers } = await get(url);
      expect([url, statusCode, headers['content-length']]).toEqual([
        url,
        200,
        String(Buffer.byteLength(body)),
      ]);
      expectNoKey(body);
    }
    expect((await get('/admin/v1/licenses')).body).toContain('…DDDD~');
    expect((await get('/admin/v1/licenses', admin)).body).toContain('AAAAA-BBBBB-CCCCC-DDDDD');
  });

  test.each([
    ['…dddd', 1, 1],
    ['DDD', 1, 1],
    ['uyer@', 4, 4],
    ['AAAAA-BBBBB-CCCCC-DDDDD', 1, 1],
    ['DDDDD', 0, 1],
    ['-DDDD', 0, 1],
    ['CCC', 0, 1],
    ['AAAAA-BBBBB-CCCCC-DDDD', 0, 1],
  ])('a search for %s tells nothing about a key beyond what is shown', async (text, found, foundByAdmin) => {
    for (const list of ['licenses', 'purchases'] as const) {
      const url = `/admin/v1/${list}?search=${encodeURIComponent(text)}`;
      for (const [headers, count] of [
        [readOnly, found],
        [admin, foundByAdmin],
      ] as const) {
        const answer = await get(url, headers);
        expect([list, answer.statusCode, answer.headers['x-total-count']]).toEqual([
          list,
          200,
          String(count),
        ]);
        expect(Object.values(answer.json<{ data: object }>().data)[0]).toHaveLength(count);
      }
    }
  });

  test('a masked key finds its license in a query and in a path', async () => {
    const { licenses } = (await get('/admin/v1/licenses')).json<Listed>().data;
    expect(licenses).toHaveLength(keys.length);
    for (const { license_key: text } of licenses) {
      const found = await get(`/admin/v1/licenses?license_key=${encodeURIComponent(text)}`);
      expect(found.json<Listed>().data.licenses.map(({ license_key: key }) => key)).toEqual([text]);
      const reference = text.slice(text.lastIndexOf('~') + 1);
      for (const name of [text, reference]) {
        const { statusCode, body } = await get(`/admin/v1/licenses/${encodeURIComponent(name)}/history`);
        expect(statusCode).toBe(200);
        expectNoKey(body);
      }
    }
  });

  test('the pages of a list follow each other, and the link to the next page has no key', async () => {
    const pages: string[] = [];
    for (let url: string | undefined = '/admin/v1/licenses?limit=1'; url !== undefined;) {
      const { headers, body } = await get(url);
      const link = String(headers['link'] ?? '');
      expectNoKey(body);
      for (const part of link.split(/[=&>]/)) expectNoKey(Buffer.from(part, 'base64url').toString());
      pages.push(body);
      url = /^<([^>]+)>/.exec(link)?.[1];
    }
    expect(pages).toHaveLength(keys.length);
    const whole = (await get('/admin/v1/licenses')).json<Listed>().data.licenses;
    expect(pages.map((page) => (JSON.parse(page) as Listed).data.licenses[0])).toEqual(whole);
  });

  test('a masked key is no key for a session that gets whole keys, and for the operator', async () => {
    const [license] = (await get('/admin/v1/licenses')).json<Listed>().data.licenses;
    const url = `/admin/v1/licenses?license_key=${encodeURIComponent(license?.license_key ?? '')}`;
    for (const headers of [admin, operator]) {
      expect((await get(url, headers)).json<Listed>().data.licenses).toEqual([]);
    }
  });

  test('the operations of an outbox have no whole key, also not in the error of the upstream', async () => {
    const [key = ''] = keys;
    await using agent = await openConsole({ role: 'agent' });
    const progress = { state: 'dead', cause: 'refused' } as const;
    const parts = { subject: key, productId: 'P', attempts: 1, progress };
    agent.opened
      .agentTables()
      .operations.add(buildOperation({ id: 'one', ...parts, lastError: `no key ${key} here` }));
    const headers = { ...fromPage, authorization: `Bearer ${await agent.signIn()}` };
    for (const url of ['/admin/v1/outbox?state=dead', '/admin/v1/outbox/one']) {
      const { statusCode, body } = await agent.server.inject({ url, headers });
      expect([statusCode, body]).toEqual([200, expect.stringContaining('no key …DDDD here')]);
      expectNoKey(body);
    }
  });
});
