import { problems } from '../../../domain/problem/problem-table.ts';
import { done, failWith, type Result } from '../../../domain/problem/problem.ts';
import type { KnownSequence, LeaseAnswer, SignedRequest } from '../domain/lease.ts';
import { parsePlainLicenseKey } from '../../../domain/license.ts';
import type { IssuerStatus } from '../../../service/status.ts';
import type { FileAnswer, LeaseIssuer, SignedAnswer, SignedSequence } from '../service/ports.ts';
import type { LeaseService } from '../service/services.ts';
import type { WriteOptions } from '../../../service/ports.ts';
import { serializeLease, serializeNotice, serializeSequence } from '../wire/lease.ts';
import { readRequest, signDocument } from '../documents.ts';
import type { Signer, SigningKeys } from './signing-keys.ts';
import type { WaitingRequests } from './waiting.ts';

type Limit = {
  /** Takes a token and returns 0. Without a token, returns how many ms to wait for the next. */
  take(name: string): number;
};

export type IssuerParts = {
  keys: Pick<SigningKeys, 'current'>;
  leases: LeaseService;
  waiting: WaitingRequests;
  now: () => number;
  isClockSuspect: () => boolean;
  /** Limits of failures and of requests for new seats. */
  limits: { perAddress: Limit; perLicense: Limit };
  /** Counts an answered request: `lease`, `notice`, `unchanged` or the code of a problem. */
  count: (result: string) => void;
};

/** `isFree`: it does not count against the limits, unless it fails. */
type ReadRequest = { signedRequest: SignedRequest; isFree: boolean };

type AnswerOptions = Parameters<LeaseIssuer['answer']>[1];

const noWriteOptions: WriteOptions = { actor: null, requestId: null, idempotency: null };

/** Answers the signed requests of devices: signs what the use cases decide. */
export class Issuer implements Pick<LeaseIssuer, 'answer' | 'statement' | 'sign' | 'status' | 'stopWaiting'> {
  readonly #parts: IssuerParts;

  constructor(parts: IssuerParts) {
    this.#parts = parts;
  }

  // While a request waits, the functions of its answer stay in memory: few functions, without the document.
  answer(document: string, options: AnswerOptions): Promise<Result<SignedAnswer | null>> {
    return this.#read(document, options.clientAddress)
      .then((read) => (read.ok ? this.#respond(read.value, options) : read))
      .then((answered) => {
        this.#parts.count(resultOf(answered));
        return answered;
      });
  }

  /** Reads a request, and limits what counts against the limits before it is carried out. */
  async #read(document: string, clientAddress: string): Promise<Result<ReadRequest>> {
    const signer = await this.#signer();
    if (!signer.ok) return signer;
    const read = await readRequest(document, signer.value.issuer);
    if (!read.ok) return this.#limitFailure(read, clientAddress, null);
    const { act, licenseKey } = read.value.request;
    const isFree = act !== 'take' && (await this.#parts.leases.isKnown(read.value));
    const limited = isFree ? null : this.#limited(clientAddress, licenseKey);
    return limited ?? done({ signedRequest: read.value, isFree });
  }

  async #respond(
    { signedRequest, isFree }: ReadRequest,
    { waitMs, signal, clientAddress }: AnswerOptions,
  ): Promise<Result<SignedAnswer | null>> {
    const { leases } = this.#parts;
    const prepared = await leases.prepare(signedRequest, { requester: `address:${clientAddress}`, signal });
    if (prepared.ok && waitMs > 0 && (await this.#hasWaited(signedRequest, { waitMs, signal })))
      return done(null);
    const answered = prepared.ok ? await this.#carryOut(signedRequest) : prepared;
    if (answered.ok || !isFree) return answered;
    return this.#limitFailure(answered, clientAddress, signedRequest.request.licenseKey);
  }

  async #carryOut(signedRequest: SignedRequest): Promise<Result<SignedAnswer>> {
    // After a wait, another key may sign.
    const signer = await this.#signer();
    if (!signer.ok) return signer;
    const command = { signedRequest, keyNotAfter: signer.value.notAfter, until: null, isFile: false };
    const answered = await this.#parts.leases.answer(command, null, noWriteOptions);
    if (answered.ok) return await sign(answered.value.answer, signedRequest, signer.value);
    const { known, ...problem } = answered.problem;
    if (known === undefined) return answered;
    const signed = await this.#signSequence(known, signedRequest, signer.value);
    return { ok: false, problem: { ...problem, signed } };
  }

  async #signSequence(
    known: KnownSequence,
    { digest }: SignedRequest,
    { issuer, key, statement: keys }: Signer,
  ): Promise<SignedSequence> {
    const claims = serializeSequence(known, issuer, { digest, now: this.#parts.now() });
    return { sequence: await signDocument('sequence', claims, key), keys };
  }

  async statement(): Promise<Result<string>> {
    const signer = await this.#current();
    return signer.ok ? done(signer.value.statement) : signer;
  }

  async sign(
    document: string,
    { until, accountId }: { until: number | null; accountId: string | null },
    writeOptions: WriteOptions,
  ): Promise<Result<FileAnswer>> {
    const signer = await this.#signer();
    if (!signer.ok) return signer;
    const { issuer, notAfter: keyNotAfter } = signer.value;
    const read = await readRequest(document, issuer);
    if (!read.ok) return read;
    const { leases } = this.#parts;
    const { signal } = new AbortController();
    const prepared = await leases.prepare(read.value, {
      requester: null,
      signal,
      isConfirmed: until !== null,
    });
    if (!prepared.ok) return prepared;
    const command = { signedRequest: read.value, keyNotAfter, until, isFile: true };
    const answered = await leases.answer(command, accountId, writeOptions);
    if (answered.ok) return await sign(answered.value.answer, read.value, signer.value);
    const { known } = answered.problem;
    return known === undefined ? answered : done(await this.#signSequence(known, read.value, signer.value));
  }

  async status(): Promise<IssuerStatus | null> {
    const signer = await this.#current();
    if (!signer.ok) return null;
    const { issuer, version, notAfter, key } = signer.value;
    return { issuer, version, kid: key.kid, notAfter, waiting: this.#parts.waiting.count };
  }

  stopWaiting(): void {
    this.#parts.waiting.stop();
  }

  /** What signs now. Fails while the clock may be wrong. */
  async #signer(): Promise<Result<Signer>> {
    const signer = await this.#current();
    return signer.ok && this.#parts.isClockSuspect()
      ? failWith('clock_suspect', 'This issuer signs nothing until its clock and that of the store agree.')
      : signer;
  }

  async #current(): Promise<Result<Signer>> {
    return await this.#parts.keys.current(this.#parts.now());
  }

  /** Whether the request has waited and nothing has changed. */
  async #hasWaited(
    signedRequest: SignedRequest,
    { waitMs, signal }: Pick<AnswerOptions, 'waitMs' | 'signal'>,
  ): Promise<boolean> {
    const { leases, waiting, now } = this.#parts;
    const endsAt = now() + waitMs;
    for (;;) {
      const since = waiting.generation;
      const wait = await leases.mayWait(signedRequest);
      if (wait === null) return false;
      const forMs = Math.min(endsAt, wait.until) - now();
      const end = await waiting.wait(wait.licenseKey, { forMs, since, signal });
      // If nothing has changed, a lease is due when its wait is over.
      if (end === 'over') return now() < wait.until;
    }
  }

  /** The problem of a caller that asks too often; null: there is none. */
  #limited(clientAddress: string, licenseKey: string | null): Result<never> | null {
    const { perAddress, perLicense } = this.#parts.limits;
    // A limited address takes nothing from a license key. All spellings of a license key share its limit.
    const waitMs =
      perAddress.take(clientAddress) ||
      (licenseKey === null ? 0 : perLicense.take(parsePlainLicenseKey(licenseKey) ?? ''));
    if (waitMs === 0) return null;
    const detail = 'Too many requests from this address or for this license key fail, or ask for seats.';
    return failWith('rate_limited', detail, { retryAfterS: Math.ceil(waitMs / 1000) });
  }

  /** The same failure, or the problem of a caller whose requests fail too often. */
  #limitFailure(failure: Result<never>, clientAddress: string, licenseKey: string | null): Result<never> {
    // A failure of this server or of the upstream is not the caller's.
    if (failure.ok || problems[failure.problem.code].status >= 500) return failure;
    return this.#limited(clientAddress, licenseKey) ?? failure;
  }
}

async function sign(
  answer: LeaseAnswer,
  { digest }: SignedRequest,
  { issuer, key, statement: keys }: Signer,
): Promise<Result<SignedAnswer>> {
  if (answer.kind === 'refused') return { ok: false, problem: answer.problem };
  if (answer.kind === 'notice') {
    const claims = serializeNotice(answer.notice, issuer, digest);
    return done({ notice: await signDocument('notice', claims, key), keys });
  }
  const claims = serializeLease(answer.lease, issuer, digest);
  return done({ lease: await signDocument('lease', claims, key), keys });
}

function resultOf(answered: Result<SignedAnswer | null>): string {
  if (!answered.ok) return answered.problem.code;
  if (answered.value === null) return 'unchanged';
  return 'lease' in answered.value ? 'lease' : 'notice';
}
