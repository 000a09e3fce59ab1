import { continuedTotals, nextAct, totalsToSend } from '../domain/held-lease.ts';
import type { HeldLease, KnownSequence, LeaseAct, LeaseRequest, UseTotals } from '../domain/lease.ts';
import { done, failWith, type Problem, type Result } from '../../../domain/problem/problem.ts';
import type { TimeMark } from '../../../domain/clock.ts';
import { heldStatement, noLease } from '../service/held-lease.ts';
import type { Clock, IssuerReply, Log } from '../../../service/ports.ts';
import type { SignedAnswer, SignedSequence } from '../service/ports.ts';
import type { Reader } from '../../../service/tables.ts';
import type { Writer } from '../../../service/writer.ts';
import { signedPartDigest, type Answering } from '../documents.ts';
import { type DeviceDocuments, type ReceivedAnswer, requestIn } from './device-documents.ts';
import { readReply, type Reply } from '../wire/issuer-reply.ts';

/** The clock of the process. It learns from what the issuer has signed. */
export interface LearningClock extends Clock {
  learn(date: number): boolean;
  mark(): TimeMark;
}

export type ExchangeParts = {
  reader: Pick<Reader, 'heldLeases' | 'settings'>;
  writer: Writer;
  clock: LearningClock;
  log: Log;
  documents: DeviceDocuments;
  /** Sends one document, once. Never rejects. */
  send: (document: string, options: { waitS: number; signal: AbortSignal }) => Promise<IssuerReply>;
  deviceName: () => string | null;
};

/** A request that is to be signed. */
export type NextRequest = { act: LeaseAct; replaces?: string | null; nonce?: string | null };

/** Says what to ask the issuer for, once no request is unanswered; null: nothing. */
export type Want = (held: HeldLease) => NextRequest | null;

/** What to ask for by itself. `isAsked`: although it is not due. `dueAt`: when a request is due (epoch ms). */
export function dueWant(
  now: number,
  { isAsked, dueAt }: { isAsked: boolean; dueAt: (held: HeldLease) => number },
): Want {
  let isFirst = isAsked;
  return (held) => {
    const isDue = isFirst || dueAt(held) <= now;
    isFirst = false;
    const act = isDue ? nextAct(held) : null;
    return act === null ? null : { act };
  };
}

/** `away`: the issuer has not answered; the request is repeated. `refused`: it has answered no. */
export type Exchanged =
  | { kind: 'done'; held: HeldLease }
  | { kind: 'refused'; problem: Problem }
  | { kind: 'away'; detail: string; retryAfterS: number | null };

/** An unanswered request, a challenge and the request itself take 3 steps. */
const maxSteps = 8;

/**
 * Exchanges documents with the issuer, one request after the other for each license key: a request is stored before it is
 * sent, and repeated until it is answered (src/features/leases/README.md, Order and repetition). The caller makes sure that
 * there is one exchange at a time about a license key.
 */
export class Exchanges {
  readonly #parts: ExchangeParts;
  /** The requests that were signed by this process and never sent. Their answers are new. */
  readonly #fresh = new Set<string>();

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /** Repeats the unanswered request, if any, and then makes the request that is wanted. Rejects only if the store fails. */
  async exchange(licenseKey: string, want: Want, signal: AbortSignal): Promise<Exchanged> {
    /** The text of the wanted request, once it is signed. */
    let own: string | null = null;
    let refusal: Exchanged = notHeld;
    for (let step = 0; step < maxSteps; step += 1) {
      const stored = this.#parts.reader.heldLeases.get(licenseKey);
      // A key that the issuer does not know was forgotten.
      if (stored === null) return refusal;
      const wasAnswered: boolean = own !== null && stored.request?.text !== own;
      const next: NextRequest | null = stored.request === null && !wasAnswered ? want(stored) : null;
      if (wasAnswered || (stored.request === null && next === null)) return { kind: 'done', held: stored };
      const held: HeldLease = next === null ? stored : await this.#signNext(stored, next);
      const request: string | undefined = held.request?.text;
      if (request === undefined) continue;
      if (next !== null) own = request;
      const reply = await this.#ask(held, 0, signal);
      if (reply.kind === 'away') return reply;
      if (reply.kind === 'out_of_sequence') {
        const continued = await this.#continue(held, reply.known);
        if (own === request) own = continued.request?.text ?? null;
      }
      if (reply.kind !== 'refused') continue;
      const isKept = this.#parts.reader.heldLeases.get(licenseKey)?.request?.text === request;
      // The refusal of an earlier request says nothing about the wanted one, unless the earlier one must be repeated first.
      if (own === request || isKept) return reply;
      refusal = reply;
    }
    return { kind: 'away', detail: 'the issuer does not accept the order of requests', retryAfterS: null };
  }

  /** Sends a renewal that the issuer answers once something changes. Returns null if nothing has changed. */
  async waitForChange(licenseKey: string, waitS: number, signal: AbortSignal): Promise<Exchanged | null> {
    const stored = this.#parts.reader.heldLeases.get(licenseKey);
    if (stored === null) return notHeld;
    const held = stored.request === null ? await this.#signNext(stored, { act: 'renew' }) : stored;
    const reply = await this.#ask(held, waitS, signal);
    if (reply.kind === 'unchanged') return null;
    if (reply.kind === 'out_of_sequence') {
      await this.#continue(held, reply.known);
      return await this.exchange(licenseKey, () => null, signal);
    }
    if (reply.kind !== 'answer') return reply;
    return { kind: 'done', held: this.#parts.reader.heldLeases.get(licenseKey) ?? held };
  }

  /**
   * Signs a request and stores it, to be taken to the issuer as a file. It has the number of an unanswered request, which it
   * replaces.
   */
  async prepare(held: HeldLease, next: NextRequest): Promise<HeldLease> {
    const seq = held.request === null ? held.seq : held.seq - 1;
    const prepared = await this.#signNext({ ...held, seq }, next);
    if (prepared.request !== null) this.#fresh.delete(prepared.request.text);
    return prepared;
  }

  /** Records an answer. It ends the stored request only if it is the answer to that request. */
  async #record(licenseKey: string, answer: ReceivedAnswer): Promise<Result<HeldLease>> {
    const { reader, writer, clock } = this.#parts;
    const { received, statement } = answer;
    const held = reader.heldLeases.get(licenseKey);
    const answered = held !== null && answersRequest(held, answer) ? (held.request?.text ?? null) : null;
    const isNew = answered !== null && this.#fresh.delete(answered);
    const { issuedAt } = received.document;
    const isLater = received.rev > (held?.rev ?? 0);
    // The answer to a repeated request may be old: it must not turn the clock back.
    if (isLater && (isNew || issuedAt > clock.now()) && clock.learn(issuedAt)) {
      await writer.write('markTime', { mark: clock.mark() });
    }
    return await writer.write('recordLeaseAnswer', { licenseKey, answered, received, statement });
  }

  /** Takes over an answer that came as a file, and was read: to the stored request, or to an earlier one. */
  async install(held: HeldLease, answer: ReceivedAnswer): Promise<Result<HeldLease>> {
    if (answer.received.rev < held.rev && !answersRequest(held, answer))
      return failWith('lease_invalid', 'A later answer of the issuer is known here.');
    return await this.#record(held.licenseKey, answer);
  }

  /** Takes over an answer `out_of_sequence` that came as a file, and was read: the request is signed again. */
  async installSequence(held: HeldLease, answer: Answering<KnownSequence>): Promise<Result<HeldLease>> {
    if (!answersRequest(held, answer))
      return failWith('lease_invalid', 'The file does not answer the last request of this device.');
    const continued = await this.#continue(held, answer);
    if (continued.request !== null) this.#fresh.delete(continued.request.text);
    return done(continued);
  }

  /** Checks an answer. */
  async read(answer: SignedAnswer): Promise<Result<ReceivedAnswer>> {
    return await this.#parts.documents.readAnswer(answer, this.#knownVersion);
  }

  /** Checks an answer `out_of_sequence`. */
  async readSequence(answer: SignedSequence): Promise<Result<Answering<KnownSequence>>> {
    return await this.#parts.documents.readSequence(answer, this.#knownVersion);
  }

  get #knownVersion(): number {
    return heldStatement(this.#parts.reader)?.version ?? 0;
  }

  async #ask(
    held: HeldLease,
    waitS: number,
    signal: AbortSignal,
  ): Promise<Exclude<Reply, { kind: 'answer' | 'out_of_sequence' }> | Answered | OutOfSequence> {
    const { licenseKey, request } = held;
    const text = request?.text ?? '';
    const reply = readReply(await this.#parts.send(text, { waitS, signal }));
    // Whatever comes now, a later answer to the same request may be a stored one.
    if (reply.kind !== 'answer') this.#fresh.delete(text);
    if (reply.kind === 'unchanged') return waitS > 0 ? reply : away('HTTP 204, which was not asked for');
    if (reply.kind === 'refused') {
      const { isRecorded, problem } = reply;
      const isUnknownKey = problem.code === 'license_not_found';
      await this.#parts.writer.write('recordLeaseRefusal', {
        licenseKey,
        answered: text,
        isRecorded,
        isUnknownKey,
      });
    }
    if (reply.kind === 'out_of_sequence') {
      const read = await this.readSequence(reply.answer);
      if (!read.ok) return this.#distrust(licenseKey, read.problem.detail);
      if (!answersRequest(held, read.value)) return this.#distrust(licenseKey, anotherRequest);
      return { kind: 'out_of_sequence', known: read.value };
    }
    if (reply.kind !== 'answer') return reply;
    const read = await this.read(reply.answer);
    if (!read.ok) return this.#distrust(licenseKey, read.problem.detail);
    if (!answersRequest(held, read.value)) return this.#distrust(licenseKey, anotherRequest);
    const { productKey } = read.value;
    if (productKey !== null && productKey !== held.productKey)
      return this.#distrust(licenseKey, `The lease is for the product ${productKey}.`);
    const recorded = await this.#record(licenseKey, read.value);
    return recorded.ok ? { kind: 'answer' } : away(recorded.problem.detail);
  }

  #distrust(licenseKey: string, detail: string): ReturnType<typeof away> {
    this.#parts.log.warn(
      { licenseKey, detail },
      'an answer of the issuer cannot be trusted, and was ignored',
    );
    return away(`the answer cannot be trusted: ${detail}`);
  }

  async #signNext(held: HeldLease, next: NextRequest): Promise<HeldLease> {
    return await this.#sign(held, {
      ...next,
      seq: held.seq + 1,
      challenge: null,
      uses: totalsToSend(held),
    });
  }

  /** Signs the same request again, after the last number that the issuer knows. */
  async #continue(held: HeldLease, { last, challenge, uses, isRestored }: KnownSequence): Promise<HeldLease> {
    const { licenseKey, request } = held;
    if (request === null) return held;
    const { act, replaces, nonce } = requestIn(request.text);
    const issuer = { last, challenge, uses, isRestored };
    const totals = continuedTotals(held, issuer);
    this.#parts.log.info(
      { licenseKey, last },
      'the issuer knows other requests of this device: going on after them',
    );
    return await this.#sign(
      held,
      { act, replaces, nonce, seq: last + 1, challenge, uses: totalsToSend({ ...held, ...totals }) },
      issuer,
    );
  }

  async #sign(
    held: HeldLease,
    next: NextRequest & { seq: number; challenge: string | null; uses: UseTotals },
    issuer?: KnownSequence,
  ): Promise<HeldLease> {
    const { documents, writer, deviceName } = this.#parts;
    const { licenseKey, productKey, activationId } = held;
    const { act, replaces = null, nonce = null, seq, challenge, uses } = next;
    const request: LeaseRequest = {
      act,
      productKey,
      licenseKey,
      seq,
      challenge,
      activationId: challenge === null ? null : activationId,
      nonce,
      deviceName: deviceName(),
      replaces,
      uses,
    };
    const text = await documents.signRequest(request);
    const stored = await writer.write('storeLeaseRequest', {
      licenseKey,
      seq,
      request: { text, act, uses },
      replaced: held.request?.text ?? null,
      ...(issuer !== undefined && { issuer }),
    });
    if (!stored.ok) return held;
    if (stored.value.request?.text === text) this.#fresh.add(text);
    return stored.value;
  }
}

/** A lease or notice that was checked and recorded. */
type Answered = { kind: 'answer' };

type OutOfSequence = { kind: 'out_of_sequence'; known: KnownSequence };

const anotherRequest = 'It is the answer to another request.';

/** Whether a document of the issuer answers the stored request. */
export function answersRequest(
  { request }: Pick<HeldLease, 'request'>,
  { request: digest }: Answering<unknown>,
): boolean {
  return request !== null && signedPartDigest(request.text, 'base64url') === digest;
}

const notHeld: Exchanged = { kind: 'refused', problem: noLease().problem };

function away(detail: string): { kind: 'away'; detail: string; retryAfterS: null } {
  return { kind: 'away', detail, retryAfterS: null };
}
