import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyLease } from '../../src/client/index.ts';
import { defaultLeaseTerms } from '../../src/domain/catalogue.ts';
import { signDocument, type KeyPair } from '../../src/features/leases/documents.ts';
import { serializeRequest, type PublicJwk } from '../../src/features/leases/wire/lease.ts';
import { operate } from '../support/app/people.ts';
import { keyPair, readKeyFile } from '../features/leases/support/lease-builders.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const issuer = 'http://127.0.0.1:8790';

type Answer = { status: number; body: { code?: string; data?: { lease?: string; keys?: string } } };

/** An authority in a process of its own, with a license, and a device that asks it for leases. */
async function startIssuer(directory: string) {
  const daemon = await startDaemonProcess(directory, { listen: { tcp: '127.0.0.1:0' } });
  const run = async (...argv: string[]): Promise<Record<string, unknown>> => {
    const { code, out, err } = await operate(directory, ...argv, '--json');
    if (code !== 0) throw new Error(`${argv.join(' ')}: ${err}`);
    return JSON.parse(out) as Record<string, unknown>;
  };
  const { product_key: productKey } = await run('product', 'add', 'Press');
  const { license } = await run(
    'license',
    'issue',
    '--product',
    String(productKey),
    '--email',
    'a@example.com',
  );
  const { license_key: licenseKey } = license as { license_key: string };
  const call = async (path: string, init?: RequestInit): Promise<Answer> => {
    const response = await fetch(`${daemon.tcp}${path}`, init);
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  };
  const device = await keyPair();
  let seq = 0;
  return {
    run,
    lines: daemon.lines,
    productKey: String(productKey),
    licenseKey,
    keys: () => call('/lease/v1/keys'),
    /** Sends a request that this key has signed. */
    async ask(by: KeyPair = device): Promise<Answer> {
      const request = {
        act: 'take' as const,
        productKey: String(productKey),
        licenseKey,
        seq: seq + 1,
        challenge: null,
        nonce: null,
        deviceName: null,
        replaces: null,
        activationId: null,
        uses: { recorded: 0, returned: 0 },
      };
      const claims = serializeRequest(request, issuer, `aaaaaaaaaaaaaaaaaaaa${seq}`);
      const body = await signDocument('request', claims, by);
      const answer = await call('/lease/v1', {
        method: 'POST',
        headers: { 'content-type': 'application/jwt' },
        body,
      });
      if (answer.status === 200) seq += 1;
      return answer;
    },
    [Symbol.asyncDispose]: () => daemon[Symbol.asyncDispose](),
  };
}

test('keys are set up, added and retired while the daemon runs, and a program refuses what a leaked key signs', async () => {
  await using temporary = temporaryDirectory();
  const file = (name: string) => join(temporary.path, name);
  await using served = await startIssuer(temporary.path);
  const { run, productKey: product, licenseKey } = served;
  expect(await served.keys()).toMatchObject({ status: 503, body: { code: 'leases_not_set_up' } });
  expect(await served.ask()).toMatchObject({ status: 503, body: { code: 'leases_not_set_up' } });

  const made = await run('lease', 'setup', '--issuer', issuer, '--roots', file('roots'));
  const roots = (made['roots'] as { jwk: PublicJwk }[]).map(({ jwk }) => jwk);
  const keyFile = join(String(made['signing_dir']), `${String(made['kid'])}.jwk`);
  const leaked = await readKeyFile(keyFile);
  const { d: secret } = JSON.parse(readFileSync(keyFile, 'utf8')) as { d: string };
  const first = await served.ask();
  expect(first).toMatchObject({ status: 200 });
  const check = ({ body: { data } }: Answer, minKeysVersion = 0) =>
    verifyLease({
      lease: data?.lease,
      keys: data?.keys ?? '',
      roots,
      issuer,
      product,
      licenseKey,
      minKeysVersion,
    });
  expect(check(first)).toMatchObject({ verdict: 'valid', keysVersion: 1 });

  // The owner of a leaked key signs a lease, and a statement with a key of their own.
  const thief = await keyPair();
  const claims = JSON.parse(
    Buffer.from(first.body.data?.lease?.split('.')[1] ?? '', 'base64url').toString(),
  ) as Parameters<typeof signDocument<'lease'>>[1];
  const forged = {
    ...first,
    body: { data: { ...first.body.data, lease: await signDocument('lease', claims, leaked) } },
  };
  expect(check(forged)).toMatchObject({ verdict: 'valid' });
  const notAfter = Math.floor((Date.now() + defaultLeaseTerms.termMs) / 1000);
  const theirs = { iss: issuer, version: 2, keys: [{ jwk: thief.jwk, not_after: notAfter }] };
  for (const key of [leaked, { ...leaked, kid: String((made['roots'] as { kid: string }[])[0]?.kid) }]) {
    const statement = await signDocument('keys', theirs, key);
    const lease = await signDocument('lease', claims, thief);
    expect(() => check({ status: 200, body: { data: { lease, keys: statement } } })).toThrow(
      /root keys|signature/i,
    );
  }

  // The vendor replaces the leaked key.
  expect(
    await run('lease', 'signing-key', 'rotate', '--root', file('roots/root-2.jwk'), '--retire', leaked.kid),
  ).toMatchObject({ version: 2, removed: [leaked.kid] });
  const next = await served.ask();
  expect(check(next, 1)).toMatchObject({ verdict: 'valid', keysVersion: 2 });

  // A program that has seen the next statement refuses the leaked key with either statement.
  expect(() => check(forged, 2)).toThrow('The key statement has version 1, and version 2 was seen.');
  const mixed = { ...next, body: { data: { ...next.body.data, lease: forged.body.data.lease } } };
  expect(() => check(mixed, 2)).toThrow('does not have the key that has signed the lease');

  expect(JSON.stringify([first, next, served.lines])).not.toContain(secret);
});
