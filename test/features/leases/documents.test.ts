import { createHmac, createPublicKey } from 'node:crypto';
import { CompactSign, generateKeyPair, importJWK } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import * as documents from '../../../src/features/leases/documents.ts';
import type { KeyPair } from '../../../src/features/leases/documents.ts';
import {
  documentTypes,
  maxDocumentBytes,
  parseStatementClaims,
  type DocumentClaims,
  type KeyStatement,
} from '../../../src/features/leases/wire/lease.ts';
import { documentClaims, keyPair, leaseIssuer } from './support/lease-builders.ts';

const { readLease, readNotice, readProof, readRequest, readStatement, signDocument } = documents;

let device: KeyPair;
let root: KeyPair;
let signing: KeyPair;
let claims: DocumentClaims;
let statement: KeyStatement;

beforeAll(async () => {
  [device, root, signing] = await Promise.all([keyPair(), keyPair(), keyPair()]);
  claims = documentClaims(device, signing);
  statement = parseStatementClaims(claims.keys);
});

type Json = Record<string, unknown>;

/** Signs any header and payload text with a key, as another program could. */
async function signText(header: string, payload: string, key: KeyPair = device): Promise<string> {
  const part = `${encode(header)}.${encode(payload)}`;
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key.key, Buffer.from(part));
  return `${part}.${Buffer.from(signature).toString('base64url')}`;
}

function encode(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

const requestHeader = (): Json => ({ alg: 'ES256', typ: documentTypes.request, jwk: device.jwk });

function signRequest(header: Json, payload: Json = claims.request, key: KeyPair = device): Promise<string> {
  return signText(JSON.stringify(header), JSON.stringify(payload), key);
}

/** The detail with which a document is refused; fails if it is accepted. */
async function refusal(reading: Promise<unknown>): Promise<string> {
  const result = (await reading) as Awaited<ReturnType<typeof readRequest>>;
  if (result.ok) throw new Error('the document was accepted');
  return `${result.problem.code}: ${result.problem.detail}`;
}

describe('documents', () => {
  it('are read as they were signed', async () => {
    const request = await signDocument('request', claims.request, device);
    expect(await readRequest(request, leaseIssuer)).toEqual({
      ok: true,
      value: {
        request: {
          act: 'renew',
          productKey: 'RGsF',
          licenseKey: '85DB562A-C11D4B06-A2335A6B-8C079166',
          seq: 2,
          challenge: 'CCCCCCCCCCCCCCCC',
          nonce: 'AAAAAAAAAAAAAAAAAAAAAA',
          deviceName: 'Zoë’s laptop "1" \\ 2',
          replaces: null,
          activationId: 'act_01',
          uses: { recorded: 5, returned: 1 },
        },
        device: device.kid,
        digest: documents.signedPartDigest(request, 'hex'),
      },
    });
    const keys = await signDocument('keys', claims.keys, root);
    expect(await readStatement(keys, [signing.jwk, root.jwk].slice(1))).toEqual({
      ok: true,
      value: statement,
    });
    const lease = await readLease(await signDocument('lease', claims.lease, signing), statement);
    expect(lease).toMatchObject({
      ok: true,
      value: {
        activationId: 'act_01',
        productKey: 'RGsF',
        expiresAt: 1_790_000_000_000,
        rev: 1_780_000_000_123,
        license: { licenseKey: claims.lease.license.license_key, createdAt: Date.UTC(2026, 0, 2, 3, 4, 5) },
        seats: { limit: 3, taken: 1 },
        device: device.kid,
        nonce: null,
      },
    });
    const notice = await readNotice(await signDocument('notice', claims.notice, signing), statement);
    expect(notice).toMatchObject({ ok: true, value: { state: 'disabled', rev: 1_780_000_000_124 } });
    expect(await readProof(await signDocument('proof', claims.proof, device), device.kid)).toEqual({
      ok: true,
      value: { productKey: 'RGsF', nonce: claims.proof.nonce, leaseHash: signing.kid },
    });
  });

  it('are signed so that jose verifies them with the public key alone', async () => {
    const { compactVerify } = await import('jose');
    const lease = await signDocument('lease', claims.lease, signing);
    const verified = await compactVerify(lease, await importJWK(signing.jwk, 'ES256'));
    expect(verified.protectedHeader).toEqual({ alg: 'ES256', typ: documentTypes.lease, kid: signing.kid });
    expect(JSON.parse(Buffer.from(verified.payload).toString())).toEqual(claims.lease);
  });

  it('have a digest that does not depend on the signature, which differs each time', async () => {
    const [first, second] = await Promise.all(
      [1, 2].map(() => signDocument('request', claims.request, device)),
    );
    expect(first).not.toBe(second);
    const digest = documents.signedPartDigest(first ?? '', 'base64url');
    expect(documents.signedPartDigest(second ?? '', 'base64url')).toBe(digest);
    expect(digest).toMatch(/^[\w-]{43}$/);
  });

  it('name keys by the thumbprint of RFC 7638, as jose does', async () => {
    const { calculateJwkThumbprint } = await import('jose');
    expect(await calculateJwkThumbprint(device.jwk)).toBe(device.kid);
  });
});

describe('a request', () => {
  it('is accepted with the second valid form of its signature', async () => {
    const document = await signDocument('request', claims.request, device);
    const [header, payload, signature = ''] = document.split('.');
    const bytes = Buffer.from(signature, 'base64url');
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const other = (order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)).toString(16).padStart(64, '0');
    const twin = `${header}.${payload}.${encode(Buffer.concat([bytes.subarray(0, 32), Buffer.from(other, 'hex')]))}`;
    expect(twin).not.toBe(document);
    const results = await Promise.all([document, twin].map((text) => readRequest(text, leaseIssuer)));
    expect(results[0]).toMatchObject({ ok: true });
    expect(results[1]).toEqual(results[0]);
  });

  it.each<[name: string, make: () => Promise<string> | string, detail: string]>([
    [
      'of another type',
      () => signRequest({ ...requestHeader(), typ: 'JWT' }),
      'The type (typ) is "JWT", and must be "latchkey-request+jwt".',
    ],
    [
      'without a type',
      () => signRequest({ alg: 'ES256', jwk: device.jwk }),
      'The type (typ) is missing, and must be "latchkey-request+jwt".',
    ],
    [
      'with algorithm none and no signature',
      () => `${encode(JSON.stringify({ ...requestHeader(), alg: 'none' }))}.${encode('{}')}.`,
      'The document is not a signed document: three parts in base64url with dots between them.',
    ],
    [
      'with algorithm none and some signature',
      () =>
        `${encode(JSON.stringify({ ...requestHeader(), alg: 'none' }))}.${encode('{}')}.${encode(Buffer.alloc(64))}`,
      'The algorithm (alg) is "none", and must be "ES256".',
    ],
    [
      'with another algorithm',
      () => signRequest({ ...requestHeader(), alg: 'ES384' }),
      'The algorithm (alg) is "ES384", and must be "ES256".',
    ],
    [
      'without a key',
      () => signRequest({ alg: 'ES256', typ: documentTypes.request }),
      'The header has no jwk.',
    ],
    [
      'with a kid instead of a key',
      () => signRequest({ alg: 'ES256', typ: documentTypes.request, kid: device.kid }),
      'The header has the member "kid", which is not allowed.',
    ],
    ...['crit', 'b64', 'jku', 'x5c', 'x5t#S256', 'kid', 'cty', '__proto__'].map(
      (member): [string, () => Promise<string>, string] => [
        `with the header member ${member}`,
        () =>
          signText(
            JSON.stringify(requestHeader()).replace(/\}$/, `,${JSON.stringify(member)}:["b64"]}`),
            JSON.stringify(claims.request),
          ),
        `The header has the member "${member}", which is not allowed.`,
      ],
    ),
    [
      'whose key is no object',
      () => signRequest({ ...requestHeader(), jwk: 'key' }),
      'The jwk is not an object.',
    ],
    [
      'whose key has another curve',
      () => signRequest({ ...requestHeader(), jwk: { ...device.jwk, crv: 'P-384' } }),
      'The jwk is not a public P-256 key: crv: Invalid input: expected "P-256".',
    ],
    [
      'whose key has further members',
      () => signRequest({ ...requestHeader(), jwk: { ...device.jwk, use: 'sig' } }),
      'The jwk is not a public P-256 key: Unrecognized key: "use".',
    ],
    [
      'whose key is too long',
      () => signRequest({ ...requestHeader(), jwk: { ...device.jwk, x: `${device.jwk.x}AAAA` } }),
      'The jwk is not a public P-256 key: x: must be 32 bytes in base64url.',
    ],
    [
      'whose key is spelled with unused bits',
      () => signRequest({ ...requestHeader(), jwk: { ...device.jwk, x: withUnusedBits(device.jwk.x) } }),
      'The jwk is not a public P-256 key: x: must be 32 bytes in base64url.',
    ],
    [
      'whose key is not on the curve',
      () => signRequest({ ...requestHeader(), jwk: { ...device.jwk, y: signing.jwk.y } }),
      'The public key is not a point of the curve P-256.',
    ],
    [
      'that another key has signed',
      () => signRequest(requestHeader(), claims.request, signing),
      'The signature is wrong.',
    ],
    [
      'for another issuer',
      () => signRequest(requestHeader(), { ...claims.request, aud: 'https://other.example' }),
      'The audience (aud) is "https://other.example", and this issuer is "https://licenses.example.com".',
    ],
    [
      'for two issuers',
      () => signRequest(requestHeader(), { ...claims.request, aud: [leaseIssuer, 'https://other.example'] }),
      'The payload is not valid: aud: Invalid input: expected string, received array.',
    ],
    [
      'with a number as text',
      () => signRequest(requestHeader(), { ...claims.request, seq: '2' }),
      'The payload is not valid: seq: Invalid input: expected number, received string.',
    ],
    [
      'with a negative total',
      () => signRequest(requestHeader(), { ...claims.request, uses: { recorded: -1, returned: 0 } }),
      'The payload is not valid: uses.recorded: Too small: expected number to be >=0.',
    ],
    [
      'with an unknown act',
      () => signRequest(requestHeader(), { ...claims.request, act: 'sell' }),
      'The payload is not valid: act: Invalid option: expected one of "take"|"renew"|"end".',
    ],
    [
      'with another claim',
      () => signRequest(requestHeader(), { ...claims.request, iat: 1_780_000_000 }),
      'The payload is not valid: Unrecognized key: "iat".',
    ],
    [
      'without a license key',
      () =>
        signRequest(
          requestHeader(),
          Object.fromEntries(Object.entries(claims.request).filter(([name]) => name !== 'license_key')),
        ),
      'The payload is not valid: license_key: Invalid input: expected string, received undefined.',
    ],
    [
      'with control characters',
      () => signRequest(requestHeader(), { ...claims.request, device_name: 'a\u0000b' }),
      'The payload has control characters.',
    ],
    [
      'with half a character',
      () => signRequest(requestHeader(), { ...claims.request, device_name: 'a\ud800' }),
      'The payload has control characters.',
    ],
    [
      'with a duplicate claim',
      () =>
        signText(
          JSON.stringify(requestHeader()),
          JSON.stringify(claims.request).replace('{', '{"act":"end",'),
        ),
      "The payload has duplicate members, white space or another spelling than JSON.stringify's.",
    ],
    [
      'with a duplicate header member',
      () =>
        signText(
          JSON.stringify(requestHeader()).replace('{', '{"alg":"none",'),
          JSON.stringify(claims.request),
        ),
      "The header has duplicate members, white space or another spelling than JSON.stringify's.",
    ],
    [
      'with white space in its payload',
      () => signText(JSON.stringify(requestHeader()), JSON.stringify(claims.request, null, 1)),
      "The payload has duplicate members, white space or another spelling than JSON.stringify's.",
    ],
    [
      'with a number that no computer can hold',
      () =>
        signText(
          JSON.stringify(requestHeader()),
          JSON.stringify(claims.request).replace('"seq":2', '"seq":9007199254740993'),
        ),
      "The payload has duplicate members, white space or another spelling than JSON.stringify's.",
    ],
    [
      'with a byte order mark',
      () => signText(`\uFEFF${JSON.stringify(requestHeader())}`, JSON.stringify(claims.request)),
      'The header is not JSON in UTF-8.',
    ],
    [
      'whose payload is not JSON',
      () => signText(JSON.stringify(requestHeader()), 'seq=2'),
      'The payload is not JSON in UTF-8.',
    ],
    [
      'whose payload is a list',
      () => signText(JSON.stringify(requestHeader()), '[]'),
      'The payload is not a JSON object.',
    ],
    ['that is a JSON object', () => '{"payload":"e30"}', notSigned()],
    ['that is empty', () => '', notSigned()],
    ['with a fourth part', async () => `${await signRequest(requestHeader())}.AAAA`, notSigned()],
    ['with padding', async () => `${await signRequest(requestHeader())}==`, notSigned()],
    ['with a line break', async () => `${await signRequest(requestHeader())}\n`, notSigned()],
    [
      'in base64 instead of base64url',
      async () =>
        (await signRequest(requestHeader())).replace(
          /\.([^.]+)\./,
          (_, part: string) => `.${Buffer.from(part, 'base64url').toString('base64')}.`,
        ),
      notSigned(),
    ],
    [
      'with a DER signature',
      async () => (await signRequest(requestHeader())).replace(/[^.]+$/, encode(Buffer.alloc(70, 1))),
      'The signature is not an ES256 signature of 64 bytes.',
    ],
    [
      'with a signature of zeros',
      async () => (await signRequest(requestHeader())).replace(/[^.]+$/, encode(Buffer.alloc(64))),
      'The signature is wrong.',
    ],
    ['over 8 KiB', () => 'a'.repeat(maxDocumentBytes + 1), 'The document is larger than 8 KiB.'],
  ])('%s is refused', async (_, make, detail) => {
    expect(await refusal(readRequest(await make(), leaseIssuer))).toBe(`lease_request_invalid: ${detail}`);
  });

  it('with a private key in its header is refused, and the private key is not repeated', async () => {
    const secret = await documents.newKey();
    const pair = await documents.readPrivateKey(JSON.stringify(secret));
    const detail = await refusal(
      readRequest(
        await signRequest({ ...requestHeader(), jwk: secret }, claims.request, pair ?? device),
        leaseIssuer,
      ),
    );
    expect(detail).toContain('The jwk contains the private key (d)');
    expect(detail).not.toContain(secret.d);
  });

  it('that is signed by HS256 with the public key as secret is refused', async () => {
    const spki = createPublicKey({ key: device.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
    for (const secret of [spki, JSON.stringify(device.jwk)]) {
      const part = `${encode(JSON.stringify({ ...requestHeader(), alg: 'HS256' }))}.${encode(JSON.stringify(claims.request))}`;
      const short = `${part}.${createHmac('sha256', secret).update(part).digest('base64url')}`;
      expect(await refusal(readRequest(short, leaseIssuer))).toContain(
        'The signature is not an ES256 signature',
      );
      const long = `${part}.${createHmac('sha512', secret).update(part).digest('base64url')}`;
      expect(await refusal(readRequest(long, leaseIssuer))).toContain('The algorithm (alg) is "HS256"');
    }
  });

  it('with the key of a larger curve is refused', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES384');
    const jwk = await crypto.subtle.exportKey('jwk', publicKey);
    const document = await new CompactSign(Buffer.from(JSON.stringify(claims.request)))
      .setProtectedHeader({ alg: 'ES384', typ: documentTypes.request, jwk: { ...jwk } })
      .sign(privateKey);
    expect(await refusal(readRequest(document, leaseIssuer))).toContain('is not an ES256 signature');
  });

  it('is refused with a short sentence if a stranger has written something long', async () => {
    const document = await signRequest({ ...requestHeader(), typ: 'x'.repeat(5000) });
    expect((await refusal(readRequest(document, leaseIssuer))).length).toBeLessThan(200);
  });
});

function notSigned(): string {
  return 'The document is not a signed document: three parts in base64url with dots between them.';
}

/** Another spelling of the same 32 bytes: the two unused bits of the last character are set. */
function withUnusedBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return `${text.slice(0, -1)}${alphabet[alphabet.indexOf(text.slice(-1)) + 1]}`;
}

describe('a key statement', () => {
  it('is refused if none of the known root keys has signed it, also if it names one of them', async () => {
    const foreign = await signDocument('keys', claims.keys, signing);
    expect(await refusal(readStatement(foreign, [root.jwk]))).toBe(
      'lease_invalid: None of the known root keys has signed the key statement.',
    );
    const claiming = await signDocument('keys', claims.keys, { ...signing, kid: root.kid });
    expect(await refusal(readStatement(claiming, [root.jwk]))).toBe('lease_invalid: The signature is wrong.');
  });

  it('is accepted from either of two root keys', async () => {
    const roots = [root.jwk, device.jwk];
    for (const key of [root, device]) {
      expect(await readStatement(await signDocument('keys', claims.keys, key), roots)).toMatchObject({
        ok: true,
      });
    }
  });

  it('is refused if it lists a key twice, a root key, or what is no key', async () => {
    const listed = (jwk: KeyPair['jwk']) => ({ jwk, not_after: 1_798_761_600 });
    const sign = (...jwks: KeyPair['jwk'][]) =>
      signDocument('keys', { ...claims.keys, keys: jwks.map(listed) }, root);
    const read = async (document: Promise<string>) =>
      await refusal(readStatement(await document, [root.jwk]));
    expect(await read(sign(signing.jwk, signing.jwk))).toContain('lists a key twice');
    expect(await read(sign(signing.jwk, root.jwk))).toContain('lists a root key');
    expect(await read(sign({ ...signing.jwk, y: device.jwk.y }))).toContain('not a point of the curve');
  });
});

describe('a lease', () => {
  it('is refused if its statement does not list its key, or is of another issuer', async () => {
    const lease = await signDocument('lease', claims.lease, device);
    expect(await refusal(readLease(lease, statement))).toContain('does not list the key that has signed it');
    const valid = await signDocument('lease', claims.lease, signing);
    expect(await refusal(readLease(valid, { ...statement, issuer: 'https://other.example' }))).toBe(
      'lease_invalid: The issuer is "https://licenses.example.com", and the issuer of the key statement is "https://other.example".',
    );
  });

  it('is refused if it is valid for a second longer than its key', async () => {
    const exp = (statement.keys[0]?.notAfter ?? 0) / 1000;
    const sign = (end: number) => signDocument('lease', { ...claims.lease, exp: end }, signing);
    expect(await readLease(await sign(exp), statement)).toMatchObject({ ok: true });
    expect(await refusal(readLease(await sign(exp + 1), statement))).toContain('longer than the key');
  });

  it('of a license with unknown members is refused', async () => {
    const license = { ...claims.lease.license, price: 1 };
    const lease = await signDocument('lease', { ...claims.lease, license }, signing);
    expect(await refusal(readLease(lease, statement))).toContain('license: Unrecognized key: "price"');
  });
});

describe('a proof', () => {
  it('of another device is refused', async () => {
    const proof = await signDocument('proof', claims.proof, signing);
    expect(await refusal(readProof(proof, device.kid))).toContain('Another device has signed the proof.');
  });
});

describe('a key in a file', () => {
  it('is read with its public part, and members of other programs do not matter', async () => {
    const key = await documents.newKey();
    const pair = await documents.readPrivateKey(
      JSON.stringify({ ...key, kid: 'mine', alg: 'ES256' }, null, 2),
    );
    expect(pair?.jwk).toEqual(documents.publicPartOf(key));
    expect(await documents.readPublicKey(JSON.stringify({ ...pair?.jwk, kid: 'mine' }))).toEqual(pair?.jwk);
  });

  it('is not read if its parts are of different keys, or if it is none', async () => {
    const [one, other] = [await documents.newKey(), await documents.newKey()];
    expect(await documents.readPrivateKey(JSON.stringify({ ...one, d: other.d }))).toBeNull();
    for (const text of ['', '{', 'null', '[]', '"d"', JSON.stringify(documents.publicPartOf(one))]) {
      expect(await documents.readPrivateKey(text)).toBeNull();
    }
    expect(await documents.readPublicKey(JSON.stringify(one))).toBeNull();
    expect(
      await documents.readPublicKey(JSON.stringify({ ...documents.publicPartOf(one), y: other.y })),
    ).toBeNull();
  });
});
