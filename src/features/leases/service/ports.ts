import type { HeldLease, LeaseAct } from '../domain/lease.ts';
import type { Result } from '../../../domain/problem/problem.ts';
import type { WriteOptions } from '../../../service/ports.ts';
import type { IssuerStatus } from '../../../service/status.ts';

/** Signed documents (features/leases/wire/lease.ts): a lease or a notice, and the key statement that verifies it. */
export type SignedAnswer = { lease: string; keys: string } | { notice: string; keys: string };

/** The answer `out_of_sequence`, with the key statement that verifies it. */
export type SignedSequence = { sequence: string; keys: string };

/** What comes back from the issuer as a file. */
export type FileAnswer = SignedAnswer | SignedSequence;

/** Answers signed requests of devices, at an authority or an agent. */
export interface LeaseIssuer {
  /**
   * Answers a request document. With `waitMs`, a renewal waits until its license or activation changes; null: nothing has
   * changed, nothing was carried out, and the holder repeats the same document. `clientAddress`: failures and new seats
   * are limited for each address.
   */
  answer(
    document: string,
    options: { waitMs: number; signal: AbortSignal; clientAddress: string },
  ): Promise<Result<SignedAnswer | null>>;
  /** The key statement. */
  statement(): Promise<Result<string>>;
  /**
   * Answers a request that came as a file. `until`: when the lease expires (epoch ms); null: after the term of the product.
   * `accountId`: the account whose products the caller can access; null: every account.
   */
  sign(
    document: string,
    options: { until: number | null; accountId: string | null },
    writeOptions: WriteOptions,
  ): Promise<Result<FileAnswer>>;
  /** Null until `lease setup` was run. */
  status(): Promise<IssuerStatus | null>;
  /** The host name of the issuer; null until `lease setup` was run. */
  host(): string | null;
  /** Ends all waits, now and later: the requests are answered as if their time were over. */
  stopWaiting(): void;
}

/** What a program gets from its holder. */
export type ProgramAnswer = ({ lease: string } | { notice: string }) & { proof: string | null; keys: string };

export type HeldLeaseStatus = {
  held: HeldLease;
  /** Null: no lease is held. Times are epoch ms. */
  lease: { expiresAt: number; refreshAt: number } | null;
  /** Why the last request got no lease; null: it got one. */
  lastError: string | null;
  /** When this was the state (epoch ms). */
  now: number;
};

/** Has leases for this device. `productKey`: null if the caller names none and a single product is configured. */
export interface LeaseHolder {
  activate(
    request: { licenseKey: string; productKey: string | null; replaces: string | null },
    signal: AbortSignal,
  ): Promise<Result<HeldLeaseStatus>>;
  /** Gives the seat back: at once, or as soon as the issuer answers. */
  deactivate(licenseKey: string, signal: AbortSignal): Promise<Result<HeldLeaseStatus>>;
  /** All leases of this device. */
  list(): readonly HeldLeaseStatus[];
  /**
   * The lease, and with a nonce a proof. With `waitMs` as well, the issuer is asked first to sign the nonce into the lease.
   */
  show(
    request: { licenseKey: string; productKey: string | null; nonce: string | null; waitMs: number },
    signal: AbortSignal,
  ): Promise<Result<ProgramAnswer>>;
  /** A signed request as a file, for a machine without a network. `isRefused`: the issuer has refused the last one. */
  requestFile(request: {
    licenseKey: string;
    productKey: string | null;
    act: LeaseAct;
    replaces: string | null;
    isRefused: boolean;
  }): Promise<Result<string>>;
  /** Takes over the issuer's answer to a request file. */
  install(answer: FileAnswer): Promise<Result<HeldLeaseStatus>>;
}
