import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { importJWK, jwtVerify, type JWTVerifyOptions } from 'jose';
import { expect, it } from 'vitest';
import type { LeaseTrust } from '../../src/client/index.ts';
import { signDocument, type KeyPair } from '../../src/features/leases/documents.ts';
import { documentTypes, type DocumentType } from '../../src/features/leases/wire/lease.ts';
import { documentClaims, keyPair } from '../features/leases/support/lease-builders.ts';

/*
 * A program whose author checks a lease as any other JWT: the signature, the audience, the end and perhaps the type. No other
 * document of leases passes for a lease there, whatever it says.
 */

const run = promisify(execFile);
const product: LeaseTrust['product'] = 'RGsF';
const types = Object.keys(documentTypes) as DocumentType[];

/** One document of each type, signed by the code of the issuer and the holder. */
async function signAll(): Promise<{ keys: KeyPair[]; documents: Record<DocumentType, string> }> {
  const [root, signing, device] = await Promise.all([keyPair(), keyPair(), keyPair()]);
  const claims = documentClaims(device, signing);
  const signers = {
    keys: root,
    lease: signing,
    notice: signing,
    sequence: signing,
    request: device,
    proof: device,
  };
  const signed = types.map(async (type) => [type, await signDocument(type, claims[type], signers[type])]);
  const documents = Object.fromEntries(await Promise.all(signed)) as Record<DocumentType, string>;
  return { keys: [root, signing, device], documents };
}

/** Whether jose accepts a document with any of the keys. */
async function joseAccepts(document: string, keys: readonly KeyPair[], options: JWTVerifyOptions) {
  const verified = keys.map(
    async ({ jwk }) => await jwtVerify(document, await importJWK(jwk, 'ES256'), options),
  );
  return (await Promise.allSettled(verified)).some(({ status }) => status === 'fulfilled');
}

it('jose with the type, the signature, the audience and the end accepts only the lease', async () => {
  const { keys, documents } = await signAll();
  const options = {
    typ: 'latchkey-lease+jwt',
    audience: product,
    algorithms: ['ES256'],
    currentDate: new Date(1_785_000_000_000),
  };
  for (const type of types) {
    expect([type, await joseAccepts(documents[type], keys, options)]).toEqual([type, type === 'lease']);
  }
});

it('jose without the type accepts only the lease of the signing keys, and no lease that has expired', async () => {
  const { keys, documents } = await signAll();
  const signingKeys = keys.slice(1, 2);
  const options = { audience: product, algorithms: ['ES256'], currentDate: new Date(1_785_000_000_000) };
  for (const type of types) {
    expect([type, await joseAccepts(documents[type], signingKeys, options)]).toEqual([
      type,
      type === 'lease',
    ]);
  }
  const later = { ...options, currentDate: new Date(1_790_000_000_000) };
  expect(await joseAccepts(documents.lease, signingKeys, later)).toBe(false);
});

const program = `
import json, sys, jwt
given = json.load(sys.stdin)
accepted = []
for name, document in given["documents"].items():
    for key in given["keys"]:
        try:
            if jwt.get_unverified_header(document)["typ"] != "latchkey-lease+jwt":
                continue
            jwt.decode(document, jwt.PyJWK(key, algorithm="ES256"), algorithms=["ES256"], audience=given["product"],
                       options={"verify_exp": given["verify_exp"]})
            accepted.append(name)
        except jwt.PyJWTError:
            pass
print(json.dumps(accepted))
`;

it('PyJWT with the type, the signature, the audience and the end accepts only the lease, until it expires', async ({
  skip,
}) => {
  const env = { ...process.env, PYTHONPATH: join(import.meta.dirname, '../../node_modules/.python') };
  const isInstalled = await run('python3', ['-c', 'import jwt, cryptography'], { env }).catch(() => null);
  if (isInstalled === null) skip('PyJWT is not installed here');
  const { keys, documents } = await signAll();
  const accepted = async (verifyEnd: boolean): Promise<unknown> => {
    const given = { documents, keys: keys.map(({ jwk }) => jwk), product, verify_exp: verifyEnd };
    const running = run('python3', ['-c', program], { env });
    running.child.stdin?.end(JSON.stringify(given));
    return JSON.parse((await running).stdout);
  };
  expect(await accepted(false)).toEqual(['lease']);
  const { exp } = documentClaims(...(await Promise.all([keyPair(), keyPair()]))).lease;
  expect(await accepted(true)).toEqual(exp * 1000 > Date.now() ? ['lease'] : []);
});
