import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeCertificate } from '../support/network/made-certificate.ts';
import { connect, type LatchkeyClient } from '../../src/client/index.ts';
import { certificate, privateKey } from '../support/network/certificate.ts';
import { listen } from '../support/network/listener.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const license = {
  license_key: 'KEY',
  product_link: 'RGsF',
  buyer_email: 'buyer@example.com',
  enabled: true,
  uses: 1,
  date: '2026-01-01T00:00:00Z',
};
const own = { cert: certificate, key: privateKey };
const dayMs = 86_400_000;

/** A certificate for this address that is valid for a day. */
async function issue(from: number = Date.now()): Promise<typeof own & { readonly authority: string }> {
  const made = await makeCertificate(['127.0.0.1'], { days: 1, now: from });
  return { cert: made.certificate, key: made.key, authority: made.authority };
}

interface Believer extends AsyncDisposable {
  readonly program: LatchkeyClient;
  /** The requests that the server received. */
  readonly asked: readonly unknown[];
}

/** A client of a server with a certificate, and of a listen.json with these further members. */
async function believe(written: object, shown: typeof own): Promise<Believer> {
  const directory = temporaryDirectory();
  const asked: unknown[] = [];
  const server = createServer(shown, ({ url }, response) => {
    asked.push(url);
    response.end(JSON.stringify({ data: license }));
  });
  const listener = await listen(server);
  const listening = { tcp: `https://127.0.0.1:${listener.port}`, ...written };
  writeFileSync(join(directory.path, 'listen.json'), JSON.stringify(listening), { mode: 0o600 });
  const program = connect({ stateDir: directory.path, productSecret: 'the-secret' });
  return {
    program,
    asked,
    [Symbol.asyncDispose]: async () => {
      program.close();
      await listener[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

const said = async (...[written, shown]: Parameters<typeof believe>): Promise<string> => {
  await using believer = await believe(written, shown);
  return (await believer.program.verify('KEY')).verdict;
};

it('a client trusts the certificate in listen.json whatever names it has', async () => {
  expect(await said({ certificate }, own)).toBe('valid');
});

it('a client trusts the certificate in listen.json, but no other certificate that its CA has signed', async () => {
  const made = await issue();
  expect(await said({ certificate: made.cert }, made)).toBe('valid');
  expect(await said({ certificate: made.authority }, made)).toBe('undetermined');
});

it('a client trusts the certificate in listen.json after it has expired', async () => {
  const ended = await issue(Date.now() - 30 * dayMs);
  expect(await said({ certificate: ended.cert }, ended)).toBe('valid');
});

it('a client does not trust a self-signed certificate that is not in listen.json', async () => {
  expect(await said({}, own)).toBe('undetermined');
});

it('a server with another certificate receives nothing of a change, which has not counted', async () => {
  const { cert } = await issue();
  await using believer = await believe({ certificate: cert }, own);
  const used = believer.program.use('KEY', { deadlineMs: 1_000 });
  await expect(used).rejects.toMatchObject({ name: 'AgentUnavailableError', mayHaveCounted: false });
  expect(believer.asked).toEqual([]);
});

it('a use whose TLS handshake fails has not counted', async () => {
  await using listener = await listen(createTcpServer((socket) => socket.end('no TLS')));
  const program = connect({ url: `https://127.0.0.1:${listener.port}`, productSecret: 'the-secret' });
  await expect(program.use('KEY', { deadlineMs: 300 })).rejects.toMatchObject({ mayHaveCounted: false });
});
