import { LRUCache } from 'lru-cache';
import type { Traced } from '../../domain/outbox/operation.ts';
import { credentialLabel } from '../../service/access/credential.ts';
import type { Log } from '../../service/ports.ts';
import type { Reader } from '../../service/tables.ts';

const maxLabels = 1_000;

/** Logs the steps of operations, so that one id finds all lines of a use (src/sync/README.md, The log of an operation). */
export class OperationLog {
  /** Labels by credential. The label of a token never changes. Empty: the credential has none. */
  readonly #labels: LRUCache<string, string>;
  readonly #nameOf: (credential: string) => string;
  #log: Log | null = null;
  /** Steps of the start, before the secret for the hashes of license keys is known. */
  #early: readonly Traced[] = [];

  /** `nameOf`: the name of a credential for people. */
  constructor(reader: Pick<Reader, 'tokens'>, nameOf: (credential: string) => string = (name) => name) {
    this.#nameOf = nameOf;
    this.#labels = new LRUCache<string, string>({
      max: maxLabels,
      memoMethod: (credential) => credentialLabel(reader, credential) ?? '',
    });
  }

  /** Logs the earlier steps, and all later steps. */
  begin(log: Log): void {
    this.#log = log;
    this.add(this.#early);
    this.#early = [];
  }

  add(traced: readonly Traced[]): void {
    if (this.#log === null) this.#early = [...this.#early, ...traced];
    else for (const each of traced) this.#log.info(this.#fieldsOf(each), each.point);
  }

  /** Every object has the same shape, which is fast. */
  #fieldsOf(traced: Traced): Record<string, unknown> {
    const { point, id, kind, subject, productKey, state, attempts, credential, requestId, lastError } =
      traced;
    const isStuck = point === 'held' || point === 'dead' || point === 'conflicted';
    return {
      operation: id,
      kind,
      // Only operations on a license key have a product.
      licenseKey: productKey === null ? undefined : subject,
      state,
      attempt: point === 'sent' ? attempts : undefined,
      error: isStuck ? lastError : undefined,
      credential: credential === null ? null : this.#nameOf(credential),
      label: this.#labelOf(credential),
      request_id: requestId,
    };
  }

  /** If the store cannot be read, a write must still be answered. */
  #labelOf(credential: string | null): string | undefined {
    if (credential === null) return undefined;
    try {
      return this.#labels.memo(credential) || undefined;
    } catch {
      return undefined;
    }
  }
}
