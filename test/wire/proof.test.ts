import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isProofOf, proofOf, socketAddress, tcpAddress } from '../../src/wire/proof.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const claim = { nonce: 'n'.repeat(32), instance: 'i', address: 'tcp 127.0.0.1:8787' };

test('a proof is valid for its token, nonce, instance and address, and for no other', () => {
  const hmac = proofOf('token', claim);
  expect(hmac).toMatch(/^[\w-]{43}$/);
  expect(isProofOf(hmac, 'token', claim)).toBe(true);
  expect(isProofOf(hmac, 'tokem', claim)).toBe(false);
  for (const name of ['nonce', 'instance', 'address'] as const) {
    expect(isProofOf(hmac, 'token', { ...claim, [name]: `${claim[name]}x` }), name).toBe(false);
  }
  expect(isProofOf('', 'token', claim)).toBe(false);
  expect(isProofOf('é', 'token', claim)).toBe(false);
  expect(isProofOf(`${hmac}x`, 'token', claim)).toBe(false);
});

test('no character can move from one part of a claim to the next', () => {
  const moved = { ...claim, nonce: `${claim.nonce}","i`, instance: '' };
  expect(proofOf('token', { ...moved, instance: 'x' })).not.toBe(proofOf('token', claim));
  expect(proofOf('token', { ...claim, nonce: 'ab', instance: 'c' })).not.toBe(
    proofOf('token', { ...claim, nonce: 'a', instance: 'bc' }),
  );
});

test.each([
  ['127.0.0.1', '127.0.0.1:80'],
  ['::ffff:127.0.0.1', '127.0.0.1:80'],
  ['::FFFF:10.0.0.7', '10.0.0.7:80'],
  ['::1', '[::1]:80'],
  ['fe80::1%eth0', '[fe80::1]:80'],
  ['::ffff:1:2', '[::ffff:1:2]:80'],
])('a connection between %s and another address has both ends in its address', (host, end) => {
  const other = { host: '10.0.0.9', port: 1 };
  expect(tcpAddress({ host, port: 80 }, other)).toBe(`tcp ${end} from 10.0.0.9:1`);
  expect(tcpAddress(other, { host, port: 80 })).toBe(`tcp 10.0.0.9:1 from ${end}`);
});

test('a pipe has its own name as address', () => {
  expect(socketAddress(String.raw`\\.\pipe\latchkey-1`)).toBe(String.raw`socket \\.\pipe\latchkey-1`);
});

test.skipIf(process.platform === 'win32')('a link to the directory of a socket is resolved', async () => {
  await using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'real'));
  symlinkSync(join(directory.path, 'real'), join(directory.path, 'link'));
  expect(socketAddress(join(directory.path, 'link/a.sock'))).toBe(
    socketAddress(join(directory.path, 'real/a.sock')),
  );
});
