import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesBelow, keysIn, startIssuer } from '../support/private-keys.ts';

test('The backup of an issuer contains its activations, and no private key; neither do its exports.', async () => {
  await using issuer = await startIssuer();
  const { shop, keys, activationId } = issuer;
  const token = readFileSync(join(shop.vendorState, 'admin.token'), 'utf8').trim();
  const download = async (path: string): Promise<Buffer> => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${shop.issuer}/admin/v1/${path}`, { headers });
    expect([path, answer.status]).toEqual([path, 200]);
    return Buffer.from(await answer.arrayBuffer());
  };
  const backup = await download('backup');
  expect([backup.includes(activationId), keysIn(backup, keys)]).toEqual([true, []]);
  for (const noun of ['licenses', 'purchases', 'coupons']) {
    expect(keysIn(await download(`${noun}/export`), keys)).toEqual([]);
  }
});

test('Only the files of keys contain the private keys of an issuer and a holder: no database, log or other file does.', async () => {
  await using issuer = await startIssuer();
  for (const [path, content] of filesBelow(issuer.shop.directory)) {
    const expected = path.endsWith('.jwk') && !path.endsWith('.pub.jwk') ? 1 : 0;
    expect([path, keysIn(content, issuer.keys).length]).toEqual([path, expected]);
  }
});
