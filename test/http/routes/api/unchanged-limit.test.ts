import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { maxUnchangedResponses } from '../../../../src/service/idempotency.ts';
import { stateFiles } from '../../../../src/store/sqlite/files/state-directory.ts';
import { engineOfProject } from '../../../support/app/engine.ts';
import { adminToken, openApp, serverOf, type TestApp } from '../../../support/app/http-app.ts';

const operator = { authorization: `Bearer ${adminToken}` };
const secret = 'secret-of-the-editor-0123456789';
const ours = { 'product-secret-key': secret };

/** Stores `count` responses to changes without an effect. */
async function fill({ directory, write }: TestApp, count: number): Promise<void> {
  if (engineOfProject === null) {
    // The tables of the app commit each row separately, which takes a minute.
    using database = new DatabaseSync(join(directory, stateFiles.database));
    database
      .prepare(
        `WITH RECURSIVE filling (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM filling WHERE number < ?)
         INSERT INTO idempotency (credential, key, fingerprint, value, kept_until, unchanged)
         SELECT 'product:EDITOR', 'filling-' || number, 'f', 'null', ?, 1 FROM filling`,
      )
      .run(count, Date.now());
    return;
  }
  await write(async ({ idempotency }) => {
    const stored = { fingerprint: 'f', value: null, until: Date.now(), unchanged: true };
    for (let number = 1; number <= count; number += 1) {
      await idempotency.put('product:EDITOR', `filling-${number}`, stored);
    }
  });
}

test('responses to changes without an effect are stored up to a limit for each credential on an authority', async () => {
  await using opened = await openApp();
  const server = serverOf(opened.app);
  const post = async (url: string, payload: object): Promise<void> => {
    await server.inject({ method: 'POST', url, headers: operator, payload });
  };
  await post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR', secret });
  await post('/admin/v1/purchases', {
    product_key: 'EDITOR',
    buyer_email: 'a@example.com',
    license_key: 'KEY',
  });
  const change = async (kind: string, headers: Record<string, string>): Promise<number> => {
    const url = `/api/v2/license/${kind}`;
    const answer = await server.inject({ method: 'PUT', url, headers, payload: { license_key: 'KEY' } });
    return answer.statusCode;
  };
  const keyed = (name: string, by: Record<string, string> = ours) => ({ ...by, 'idempotency-key': name });

  expect(await change('decrease', keyed('first'))).toBe(200);
  expect(await change('enable', keyed('second'))).toBe(200);
  expect(await opened.app.reader.idempotency.unchangedCount('product:EDITOR')).toBe(2);

  await fill(opened, maxUnchangedResponses - 2);
  expect(await change('decrease', keyed('third'))).toBe(507);
  expect(await change('enable', keyed('fourth'))).toBe(507);
  // Stored responses are still returned.
  expect(await change('decrease', keyed('first'))).toBe(200);
  expect(await change('decrease', ours)).toBe(200);
  expect(await change('decrease', keyed('fifth', operator))).toBe(200);

  // Changes with an effect are not blocked by changes without an effect that arrive at the same time.
  const together = ['usage', 'enable', 'usage', 'enable', 'usage'].map((kind, index) =>
    change(kind, keyed(`together-${index}`)),
  );
  expect(await Promise.all(together)).toEqual([200, 507, 200, 507, 200]);
  expect((await opened.app.reader.licenses.get('KEY'))?.uses).toBe(3);
  expect(await change('decrease', keyed('sixth'))).toBe(200);
  expect(await change('disable', keyed('seventh'))).toBe(200);
  expect(await change('disable', keyed('eighth'))).toBe(507);
});
