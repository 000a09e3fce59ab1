import { requestedUses } from '../domain/held-lease.ts';
import type { HeldLease, LeaseAct } from '../domain/lease.ts';
import { generatedKeyIn, parsePlainLicenseKey } from '../../../domain/license.ts';
import { done, failWith, type Problem, type Result } from '../../../domain/problem/problem.ts';
import type { FileAnswer, LeaseHolder, SignedSequence } from '../service/ports.ts';
import { answersRequest, type ExchangeParts, type Exchanges } from './exchanges.ts';
import { requestIn, invalid } from './device-documents.ts';
import type { Renewals } from './renewals.ts';
import { noLease } from '../service/held-lease.ts';

type FileParts = Pick<ExchangeParts, 'reader' | 'writer'> & {
  exchanges: Exchanges;
  renewals: Pick<Renewals, 'inTurn'>;
  /** Begins to hold a license key. */
  hold: (named: { licenseKey: string; productKey: string | null }) => Promise<Result<HeldLease>>;
};

/** Requests and answers of a machine without a network, which travel as files (src/features/leases/README.md). */
export class LeaseFiles {
  readonly #parts: FileParts;

  constructor(parts: FileParts) {
    this.#parts = parts;
  }

  /** A signed request as a file. */
  async request({
    act,
    replaces,
    isRefused,
    ...named
  }: Parameters<LeaseHolder['requestFile']>[0]): Promise<Result<string>> {
    const { reader, writer, exchanges, renewals } = this.#parts;
    const stored = reader.heldLeases.get(storedKey(named.licenseKey));
    if (act === 'end' && (stored === null || stored.seq === 0)) return noLease();
    const holding = act === 'end' && stored !== null ? done(stored) : await this.#parts.hold(named);
    if (!holding.ok) return holding;
    const { value: held } = holding;
    const { licenseKey } = held;
    const wanted = act === 'end' || held.document?.kind !== 'lease' ? act : 'renew';
    return await renewals.inTurn(licenseKey, async () => {
      if (isRefused) await this.#passRefusal(licenseKey);
      const present = reader.heldLeases.get(licenseKey) ?? held;
      const { request } = present;
      const isSame = request !== null && asksForSame(present, { act: wanted, replaces });
      // The issuer may have carried it out: under another request its uses would count again.
      if (!isSame && request !== null && requestedUses(present) > 0) return unanswered(request.act);
      if (act === 'end') await writer.write('endHeldLease', { licenseKey });
      // The same file again, in case it was lost.
      if (isSame) return done(request.text);
      const prepared = await exchanges.prepare(present, { act: wanted, replaces });
      return prepared.request === null ? noLease() : done(prepared.request.text);
    });
  }

  /** A person says that the issuer has refused the last request, since a refusal comes in no file. */
  async #passRefusal(licenseKey: string): Promise<void> {
    const request = this.#parts.reader.heldLeases.get(licenseKey)?.request ?? null;
    if (request === null) return;
    const refusal = { licenseKey, answered: request.text, isRecorded: true, isUnknownKey: false };
    await this.#parts.writer.write('recordLeaseRefusal', refusal);
  }

  /** Takes over a file of the issuer. */
  async install(answer: FileAnswer): Promise<Result<HeldLease>> {
    if ('sequence' in answer) return await this.#installSequence(answer);
    const { reader, exchanges, renewals } = this.#parts;
    const read = await exchanges.read(answer);
    if (!read.ok) return read;
    const { received, productKey } = read.value;
    const held = this.#heldFor(received.activationId, read.value.licenseKey);
    if (held === null) return invalid('This device has made no request for its license key.');
    if (productKey !== null && productKey !== held.productKey)
      return invalid(`The lease is for the product ${productKey}, and ${held.productKey} was asked for.`);
    const { licenseKey } = held;
    return await renewals.inTurn(licenseKey, async () => {
      const present = reader.heldLeases.get(licenseKey) ?? held;
      return await exchanges.install(present, read.value);
    });
  }

  /** The next request file follows what the issuer knows. */
  async #installSequence(answer: SignedSequence): Promise<Result<HeldLease>> {
    const { reader, exchanges, renewals } = this.#parts;
    const read = await exchanges.readSequence(answer);
    if (!read.ok) return read;
    const { heldLeases } = reader;
    const asked = heldLeases.all().find((held) => answersRequest(held, read.value));
    if (asked === undefined) return invalid('The file does not answer the last request of this device.');
    const { licenseKey } = asked;
    return await renewals.inTurn(licenseKey, async () => {
      const present = heldLeases.get(licenseKey) ?? asked;
      return await exchanges.installSequence(present, read.value);
    });
  }

  #heldFor(activationId: string, licenseKey: string): HeldLease | null {
    const { heldLeases } = this.#parts.reader;
    return (
      heldLeases.get(storedKey(licenseKey)) ??
      heldLeases.all().find((held) => held.activationId === activationId) ??
      null
    );
  }
}

/** Pasted characters make no other license key: the issuer would see two histories of one device. */
export function storedKey(licenseKey: string): string {
  return generatedKeyIn(licenseKey) ?? parsePlainLicenseKey(licenseKey) ?? licenseKey;
}

/**
 * Whether the unanswered request is the one that is asked for. If it reports uses, a renewal and a request for a seat are
 * the same, because it must be answered first in any case.
 */
function asksForSame(
  held: HeldLease,
  { act, replaces }: { act: LeaseAct; replaces: string | null },
): boolean {
  const { request } = held;
  if (request === null) return false;
  if (replaces !== null && requestIn(request.text).replaces !== replaces) return false;
  const isForLease = act !== 'end' && request.act !== 'end';
  return request.act === act || (isForLease && requestedUses(held) > 0);
}

function unanswered(act: LeaseAct): Refused {
  const command = `latchkey lease request KEY${act === 'end' ? ' --end' : ''}`;
  return failWith(
    'lease_request_unanswered',
    `An earlier request reports uses, and the issuer may have counted them. Install its answer first; "${command}" writes it again.`,
  );
}

type Refused = { ok: false; problem: Problem };
