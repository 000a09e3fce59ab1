import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { tamper } from '../features/leases/support/documents.ts';
import { startRealHolder, type RealHolder } from '../features/leases/support/real-holder.ts';
import { listen, type Listener } from '../support/network/listener.ts';
import {
  buildExample,
  clientExamples,
  missingFor,
  runExample,
} from '../support/reference/client-examples.ts';
import { temporaryDirectory, type TemporaryDirectory } from '../support/temporary.ts';

/* Programs in many languages, with the root keys of a real issuer compiled in, ask a real holder. */

let directory: TemporaryDirectory;
let holder: RealHolder;
beforeAll(async () => {
  directory = temporaryDirectory();
  holder = await startRealHolder();
});
afterAll(async () => {
  await holder[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

type Documents = { lease: string; keys: string; proof: string };

/** Changes an answer of the holder on its way to the program. */
const changes: readonly [string, (documents: Documents) => object][] = [
  [
    'a later end of the lease',
    ({ lease, ...rest }) => ({ ...rest, lease: withClaim(lease, 'exp', 9_999_999_999) }),
  ],
  ['another product', ({ lease, ...rest }) => ({ ...rest, lease: withClaim(lease, 'aud', 'other') })],
  [
    'another byte in the header of the lease',
    ({ lease, ...rest }) => ({ ...rest, lease: withByte(lease, 0) }),
  ],
  [
    'another byte in the payload of the lease',
    ({ lease, ...rest }) => ({ ...rest, lease: withByte(lease, 1) }),
  ],
  [
    'another version of the key statement',
    ({ keys, ...rest }) => ({ ...rest, keys: withClaim(keys, 'version', 99) }),
  ],
  ['another byte in the key statement', ({ keys, ...rest }) => ({ ...rest, keys: withByte(keys, 1) })],
  ['another byte in the proof', ({ proof, ...rest }) => ({ ...rest, proof: withByte(proof, 1) })],
  ['no proof', ({ lease, keys }) => ({ lease, keys })],
  ['the key statement in place of the lease', ({ keys, proof }) => ({ lease: keys, keys, proof })],
  ['the proof in place of the lease', ({ keys, proof }) => ({ lease: proof, keys, proof })],
  ['the lease as a notice', ({ lease, keys }) => ({ notice: lease, keys })],
];

function withClaim(document: string, name: string, value: unknown): string {
  return tamper(document, 'claims', (claims) => ({ ...claims, [name]: value }));
}

function withByte(document: string, part: number): string {
  const parts = document.split('.');
  const bytes = Buffer.from(parts[part] ?? '', 'base64url');
  const middle = bytes.length >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  return parts.with(part, bytes.toString('base64url')).join('.');
}

/** Forwards the requests of programs to the holder, and changes its answers. */
async function startMiddleman(change: (documents: Documents) => object): Promise<Listener> {
  async function forward(path: string, response: ServerResponse): Promise<void> {
    const answer = await fetch(`${holder.url}${path}`);
    const { data } = (await answer.json()) as { data: Documents };
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ data: change(data) }));
  }
  return await listen(createServer((request, response) => void forward(request.url ?? '', response)));
}

it('the client accepts the lease of a real issuer, and refuses each change of it', async () => {
  const licenseKey = await holder.sell();
  const leases = { issuer: holder.issuer, product: holder.product, roots: holder.roots };
  const said = await connect({ url: holder.url, leases }).lease(licenseKey);
  expect(said).toMatchObject({ verdict: 'valid', license: { licenseKey, uses: 0 }, nonceSignedBy: 'device' });
  for (const [name, change] of changes) {
    await using middleman = await startMiddleman(change);
    const changed = await connect({ url: middleman.url, leases }).lease(licenseKey);
    expect([name, changed]).toMatchObject([name, { verdict: 'undetermined', reason: 'not_proven' }]);
  }
});

it('the issuer signs the nonce of a program that asks for a fresh lease', async () => {
  const leases = { issuer: holder.issuer, product: holder.product, roots: holder.roots };
  const client = connect({ url: holder.url, leases });
  const licenseKey = await holder.sell();
  expect(await client.lease(licenseKey)).toMatchObject({ verdict: 'valid', nonceSignedBy: 'device' });
  expect(await client.lease(licenseKey, { fresh: true })).toMatchObject({
    verdict: 'valid',
    nonceSignedBy: 'issuer',
  });
});

describe.each(clientExamples)('the program in $name', (example) => {
  it('accepts the lease of a real issuer, refuses each change of it, and the notice of a refund', async ({
    skip,
  }) => {
    const missing = await missingFor(example);
    if (missing !== null) skip(missing);
    const command = await buildExample(example, directory.path, holder);
    const licenseKey = await holder.sell();
    const run = async (url: string): Promise<string> => {
      const { stdout } = await runExample(command, [licenseKey], {
        LATCHKEY_URL: url,
        LATCHKEY_LAST_KNOWN: join(directory.path, `${example.name}-version`),
      });
      return stdout.trim().split('\n').join(', ');
    };
    expect(await run(holder.url)).toBe('valid, uses: 1');
    for (const [name, change] of changes) {
      await using middleman = await startMiddleman(change);
      expect([name, await run(middleman.url)]).toEqual([name, 'undetermined']);
    }
    await holder.atIssuer('disable', licenseKey);
    await expect.poll(() => run(holder.url)).toBe('refused: disabled');
  });
});
