import type { ReceivedDocument } from '../domain/held-lease.ts';
import type { KnownSequence, LeaseRequest } from '../domain/lease.ts';
import { done, failWith, type Result } from '../../../domain/problem/problem.ts';
import type { SignedAnswer, SignedSequence } from '../service/ports.ts';
import type { Random } from '../../../service/ports.ts';
import {
  keyHeader,
  parseRequestClaims,
  parseStatementClaims,
  requestClaims,
  serializeProof,
  serializeRequest,
  statementClaims,
  type KeyStatement,
  type PublicJwk,
} from '../wire/lease.ts';
import {
  readLease,
  readNotice,
  readSequence,
  readStatement,
  signDocument,
  signedPartDigest,
  thumbprintOf,
  type Answering,
  type KeyPair,
} from '../documents.ts';

/** An answer of the issuer to this device, whose signatures are right. */
export type ReceivedAnswer = Answering<{
  received: ReceivedDocument;
  productKey: string | null;
  licenseKey: string;
  statement: { version: number; text: string };
}>;

/** Whose documents are accepted. */
type Trust = { issuer: string; roots: readonly PublicJwk[]; random: Pick<Random, 'bytes'> };

/** Signs the documents of this device, and reads those of its issuer. */
export class DeviceDocuments {
  readonly #device: KeyPair;
  readonly #issuer: string;
  readonly #roots: readonly PublicJwk[];
  readonly #random: Pick<Random, 'bytes'>;
  /** The statement that was read last: each answer has one, and it changes about once a year. */
  #read: { text: string; statement: KeyStatement } | null = null;

  constructor(device: KeyPair, { issuer, roots, random }: Trust) {
    this.#device = device;
    this.#random = random;
    this.#issuer = issuer;
    this.#roots = roots;
  }

  /** The thumbprint of the key of this device. */
  get device(): string {
    return this.#device.kid;
  }

  async signRequest(request: LeaseRequest): Promise<string> {
    const jti = Buffer.from(this.#random.bytes(16)).toString('base64url');
    return await signDocument('request', serializeRequest(request, this.#issuer, jti), this.#device);
  }

  /** Proves to a program that asks with a nonce that this process has the key that the lease or the notice names. */
  async prove({ text, productKey }: { text: string; productKey: string }, nonce: string): Promise<string> {
    const claims = serializeProof({ productKey, nonce, leaseHash: signedPartDigest(text, 'base64url') });
    return await signDocument('proof', claims, this.#device);
  }

  /** `known`: the version of the newest known statement. */
  async #readStatement(text: string, known: number): Promise<Result<KeyStatement>> {
    if (this.#read?.text !== text) {
      const read = await readStatement(text, this.#roots);
      if (!read.ok) return read;
      this.#read = { text, statement: read.value };
    }
    const { statement } = this.#read;
    if (statement.issuer !== this.#issuer)
      return invalid(`The issuer of the key statement is ${statement.issuer}, and not ${this.#issuer}.`);
    if (statement.version < known)
      return invalid(`The key statement has version ${statement.version}; version ${known} is known here.`);
    return done(statement);
  }

  /** Checks an answer: signatures, issuer, and that it is for this device. */
  async readAnswer(answer: SignedAnswer, knownVersion: number): Promise<Result<ReceivedAnswer>> {
    const { keys } = answer;
    const read = await this.#readStatement(keys, knownVersion);
    if (!read.ok) return read;
    const document = await readDocument(answer, read.value, this.device);
    if (!document.ok) return document;
    return done({ ...document.value, statement: { version: read.value.version, text: keys } });
  }

  /** Checks the signatures and the issuer of an answer `out_of_sequence`. */
  async readSequence(
    { sequence, keys }: SignedSequence,
    knownVersion: number,
  ): Promise<Result<Answering<KnownSequence>>> {
    const read = await this.#readStatement(keys, knownVersion);
    return read.ok ? await readSequence(sequence, read.value) : read;
  }
}

/** Checks the signature of a lease or notice, and that it is for this device. */
export async function readDocument(
  signed: { lease: string } | { notice: string },
  statement: KeyStatement,
  device: string,
): Promise<Result<Omit<ReceivedAnswer, 'statement'>>> {
  if ('notice' in signed) {
    const read = await readNotice(signed.notice, statement);
    if (!read.ok) return read;
    const { activationId, licenseKey, state, rev, issuedAt, expiredAt, request } = read.value;
    if (read.value.device !== device) return invalid('The notice is for another device.');
    const document = {
      ...({ kind: 'notice', text: signed.notice, state, issuedAt, license: null } as const),
      ...(expiredAt !== undefined && { expiredAt }),
    };
    return done({ received: { document, activationId, rev }, productKey: null, licenseKey, request });
  }
  const read = await readLease(signed.lease, statement);
  if (!read.ok) return read;
  const { activationId, license, productKey, rev, issuedAt, refreshAt, expiresAt, request } = read.value;
  if (read.value.device !== device) return invalid('The lease is for another device.');
  const document = { kind: 'lease', text: signed.lease, license, issuedAt, refreshAt, expiresAt } as const;
  const received = { document, activationId, rev };
  return done({ received, productKey, licenseKey: license.licenseKey, request });
}

/** The request in a document that this device has signed itself. */
export function requestIn(document: string): LeaseRequest {
  return parseRequestClaims(requestClaims.parse(partOf(document, 1)));
}

/** The thumbprints of the keys in a key statement that was accepted here. */
export function keysIn(statement: string): ReadonlySet<string> {
  const { keys } = parseStatementClaims(statementClaims.parse(partOf(statement, 1)));
  return new Set(keys.map(({ jwk }) => thumbprintOf(jwk)));
}

/** The thumbprint of the key that has signed a lease or notice that was accepted here. */
export function signerOf(document: string): string {
  return keyHeader.parse(partOf(document, 0)).kid;
}

function partOf(document: string, index: 0 | 1): unknown {
  return JSON.parse(Buffer.from(document.split('.')[index] ?? '', 'base64url').toString());
}

export function invalid(detail: string): ReturnType<typeof failWith> {
  return failWith('lease_invalid', detail);
}
