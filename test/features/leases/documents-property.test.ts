import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  integer,
  json,
  jsonValue,
  nat,
  oneof,
  option,
  pre,
  string,
  uint8Array,
} from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Result } from '../../../src/domain/problem/problem.ts';
import {
  readLease,
  readNotice,
  readProof,
  readRequest,
  readSequence,
  readStatement,
  signDocument,
  type KeyPair,
} from '../../../src/features/leases/documents.ts';
import {
  documentTypes,
  parseStatementClaims,
  type DocumentClaims,
  type DocumentType,
} from '../../../src/features/leases/wire/lease.ts';
import { documentClaims, keyPair, leaseIssuer } from './support/lease-builders.ts';

let device: KeyPair;
let root: KeyPair;
let signing: KeyPair;
let claims: DocumentClaims;
let documents: Record<DocumentType, string>;

const types = Object.keys(documentTypes) as DocumentType[];

beforeAll(async () => {
  [device, root, signing] = await Promise.all([keyPair(), keyPair(), keyPair()]);
  claims = documentClaims(device, signing);
  documents = {
    keys: await signDocument('keys', claims.keys, root),
    lease: await signDocument('lease', claims.lease, signing),
    notice: await signDocument('notice', claims.notice, signing),
    sequence: await signDocument('sequence', claims.sequence, signing),
    request: await signDocument('request', claims.request, device),
    proof: await signDocument('proof', claims.proof, device),
  };
});

/** Reads a document as a type, in the place where that type is expected. */
async function readAs(type: DocumentType, text: string): Promise<Result<unknown>> {
  const statement = parseStatementClaims(claims.keys);
  switch (type) {
    case 'keys':
      return await readStatement(text, [root.jwk]);
    case 'lease':
      return await readLease(text, statement);
    case 'notice':
      return await readNotice(text, statement);
    case 'sequence':
      return await readSequence(text, statement);
    case 'request':
      return await readRequest(text, leaseIssuer);
    case 'proof':
      return await readProof(text, device.kid);
    default:
      return type satisfies never;
  }
}

async function isAccepted(type: DocumentType, text: string): Promise<boolean> {
  return (await readAs(type, text)).ok;
}

function encode(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

/** A document as its parts; part 0 is the header, part 1 the payload. */
function partsOf(type: DocumentType): [Buffer, Buffer, Buffer] {
  const [header = '', payload = '', signature = ''] = documents[type].split('.');
  return [
    Buffer.from(header, 'base64url'),
    Buffer.from(payload, 'base64url'),
    Buffer.from(signature, 'base64url'),
  ];
}

const anyType = constantFrom(...types);
const runs = { numRuns: 300 };

describe('documents of leases', () => {
  it('are accepted as their own type', async () => {
    for (const type of types) expect(await isAccepted(type, documents[type])).toBe(true);
  });

  it('are never accepted as another type, also if a key that may sign both has signed another typ', async () => {
    const keys: Record<DocumentType, KeyPair> = {
      keys: root,
      lease: signing,
      notice: signing,
      sequence: signing,
      request: device,
      proof: device,
    };
    for (const type of types) {
      for (const other of types.filter((each) => each !== type)) {
        expect(await isAccepted(other, documents[type])).toBe(false);
        for (const signer of [keys[type], keys[other]]) {
          const disguised = await signDocument(other, claims[type] as never, signer);
          expect(await isAccepted(other, disguised)).toBe(false);
        }
      }
    }
  });

  it('are refused after a change of any byte of their header or payload', async () => {
    await assert(
      asyncProperty(
        anyType,
        constantFrom(0, 1),
        nat(),
        integer({ min: 1, max: 255 }),
        async (type, part, at, change) => {
          const parts = partsOf(type);
          const bytes = parts[part] ?? Buffer.of();
          const place = at % bytes.length;
          bytes[place] = (bytes[place] ?? 0) ^ change;
          expect(await isAccepted(type, parts.map(encode).join('.'))).toBe(false);
        },
      ),
      { numRuns: 1500 },
    );
  });

  it('are refused after a change of any character of their text in front of the signature', async () => {
    await assert(
      asyncProperty(anyType, nat(), string({ minLength: 1, maxLength: 1 }), async (type, at, character) => {
        const text = documents[type];
        const place = at % text.lastIndexOf('.');
        pre(text[place] !== character);
        const changed = `${text.slice(0, place)}${character}${text.slice(place + 1)}`;
        expect(await isAccepted(type, changed)).toBe(false);
      }),
      runs,
    );
  });

  it('are refused if any claim or header member is changed, added or removed', async () => {
    await assert(
      asyncProperty(
        anyType,
        constantFrom(0, 1),
        nat(),
        option(jsonValue(), { nil: undefined }),
        async (type, part, at, value) => {
          const parts = partsOf(type);
          const members = JSON.parse(String(parts[part])) as Record<string, unknown>;
          const names = Object.keys(members);
          const name = at % 2 === 0 ? `x${at}` : (names[at % names.length] ?? '');
          pre(JSON.stringify(value) !== JSON.stringify(members[name]));
          const changed = JSON.stringify({ ...members, [name]: value });
          expect(
            await isAccepted(
              type,
              parts.map((bytes, index) => encode(index === part ? changed : bytes)).join('.'),
            ),
          ).toBe(false);
        },
      ),
      runs,
    );
  });

  it('that the right key has signed are refused with a header member or claim that is not of their type', async () => {
    const keys: Record<DocumentType, KeyPair> = {
      keys: root,
      lease: signing,
      notice: signing,
      sequence: signing,
      request: device,
      proof: device,
    };
    await assert(
      asyncProperty(
        anyType,
        constantFrom(0, 1),
        string({ minLength: 1, maxLength: 12 }),
        jsonValue(),
        async (type, part, name, value) => {
          const parts = partsOf(type);
          const members = JSON.parse(String(parts[part])) as Record<string, unknown>;
          // `Object.fromEntries` adds `__proto__` as an ordinary member.
          pre(
            !Object.hasOwn(members, name) &&
              !['nonce', 'challenge', 'activation_id', 'device_name', 'replaces'].includes(name),
          );
          const changed = JSON.stringify(Object.fromEntries([...Object.entries(members), [name, value]]));
          const [header, payload] = [
            part === 0 ? changed : String(parts[0]),
            part === 1 ? changed : String(parts[1]),
          ];
          const signed = `${encode(header)}.${encode(payload)}`;
          const signature = await crypto.subtle.sign(
            { name: 'ECDSA', hash: 'SHA-256' },
            keys[type].key,
            Buffer.from(signed),
          );
          expect(await isAccepted(type, `${signed}.${encode(Buffer.from(signature))}`)).toBe(false);
        },
      ),
      runs,
    );
  });

  it('are refused, and nothing is thrown, whatever the text is', async () => {
    const part = oneof(
      string(),
      json().map(encode),
      uint8Array({ maxLength: 80 }).map((bytes) => encode(Buffer.from(bytes))),
    );
    const text = oneof(
      string(),
      array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('.')),
    );
    await assert(
      asyncProperty(anyType, text, async (type, document) => {
        expect(await isAccepted(type, document)).toBe(false);
      }),
      runs,
    );
  });
});
