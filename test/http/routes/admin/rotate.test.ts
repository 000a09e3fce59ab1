import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureSecretFile, replaceSecretFile } from '../../../../src/daemon/system/secret-files.ts';
import { apiKey, dataOf, openApp, type TestApp } from '../../../support/app/http-app.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const kept: [string, string][] = [];
let opened: TestApp;

beforeAll(async () => {
  opened = await openApp({ saveApiKey: (accountId, key) => void kept.push([accountId, key]) });
});
afterAll(() => opened[Symbol.asyncDispose]());

type Rotated = { data?: Record<string, string>; errors?: { parameter: string; code: string }[] };

async function rotate(path: string, payload?: object): Promise<Rotated & { status: number }> {
  const answer = await opened.send('POST', path, payload);
  return { status: answer.statusCode, ...answer.json<Rotated>() };
}

async function statusWith(key: string): Promise<number> {
  return (await opened.send('GET', '/api/v2/coupons', undefined, { 'service-api-key': key })).statusCode;
}

test('a rotated API key stays valid as long as requested, and the response says until when', async () => {
  const { data = {} } = await rotate('accounts/default/rotate-key', { keep_old_s: 86_400 });
  const left = Date.parse(data['old_key_until'] ?? '') - Date.now();
  expect(Math.round(left / 3_600_000)).toBe(24);
  expect([await statusWith(apiKey), await statusWith(data['api_key'] ?? '')]).toEqual([200, 200]);
  expect((await opened.record()).at(-1)).toBe(
    `token:admin | account.rotate_key | default | the old one until ${data['old_key_until']}`,
  );
  const again = await rotate('accounts/default/rotate-key');
  expect(again.data).not.toHaveProperty('old_key_until');
  expect([await statusWith(apiKey), await statusWith(data['api_key'] ?? '')]).toEqual([401, 401]);
  expect(await statusWith(again.data?.['api_key'] ?? '')).toBe(200);
  expect(kept).toEqual([
    ['default', data['api_key']],
    ['default', again.data?.['api_key']],
  ]);
});

test('a rotated product secret stays valid as long as requested', async () => {
  const made = await opened.send('POST', 'products', { name: 'P', product_key: 'P' });
  const { secret } = await dataOf<{ secret: string }>(made);
  const { data = {} } = await rotate('products/P/rotate-secret', { keep_old_s: 60 });
  expect(data['old_secret_until']).toMatch(/^2/);
  const verify = async (sent: string): Promise<number> => {
    const url = '/api/v2/license/verify?license_key=none';
    return (await opened.send('GET', url, undefined, { 'product-secret-key': sent })).statusCode;
  };
  expect([await verify(secret), await verify(data['secret'] ?? ''), await verify('x')]).toEqual([
    404, 404, 401,
  ]);
});

test.each([
  [{ keep_old_s: 0 }, 'keep_old_s out_of_range'],
  [{ keep_old_s: 30 * 86_400 + 1 }, 'keep_old_s out_of_range'],
  [{ keep_old_s: '24h' }, 'keep_old_s not_an_integer'],
  [{ keep_old: 60 }, 'keep_old unknown'],
])('%j is refused, and nothing is rotated', async (payload, fault) => {
  const before = (await opened.record()).length;
  const { status, errors = [] } = await rotate('accounts/default/rotate-key', payload);
  expect([status, errors.map(({ parameter, code }) => `${parameter} ${code}`)]).toEqual([422, [fault]]);
  expect(await opened.record()).toHaveLength(before);
});

test('the file of an API key is updated in place, and is not created again after it was removed', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'api.key');
  ensureSecretFile(directory.path, 'apiKey', 'lk_api');
  replaceSecretFile(directory.path, 'apiKey', 'lk_api_new');
  expect(readFileSync(file, 'utf8')).toBe('lk_api_new\n');
  rmSync(file);
  replaceSecretFile(directory.path, 'apiKey', 'lk_api_newer');
  expect(() => readFileSync(file)).toThrow('ENOENT');
  writeFileSync(file, '');
  replaceSecretFile(directory.path, 'apiKey', 'lk_api_newer');
  expect(readFileSync(file, 'utf8')).toBe('lk_api_newer\n');
});
