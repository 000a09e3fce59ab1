import { LRUCache } from 'lru-cache';
import type { Traced } from '../../domain/outbox/operation.ts';
import { credentialLabel } from '../../service/access/credential.ts';
import type { Log } from '../../service/ports.ts';
import type { Reader } from '../../service/tables.ts';

const rememberedLabels = 1_000;

/** Logs what happens to operations, so that a use is followed by one id (src/sync/README.md, The log of an operation). */
export class OperationLog {
  /** By credential; a token's label never changes, and a use is told some times. Empty: it has none. */
  readonly #labels: LRUCache<string, string>;
  readonly #nameOf: (credential: string) => string;
  #log: Log | null = null;
  /** What the start did, before it was known under which secret license keys are hashed. */
  #early: readonly Traced[] = [];

  /** `nameOf`: the name of a credential as people know it. */
  constructor(reader: Pick<Reader, 'tokens'>, nameOf: (credential: string) => string = (name) => name) {
    this.#nameOf = nameOf;
    this.#labels = new LRUCache<string, string>({
      max: rememberedLabels,
      memoMethod: (credential) => credentialLabel(reader, credential) ?? '',
    });
  }

  /** Logs from now on, and what came before. */
  begin(log: Log): void {
    this.#log = log;
    this.add(this.#early);
    this.#early = [];
  }

  add(traced: readonly Traced[]): void {
    if (this.#log === null) this.#early = [...this.#early, ...traced];
    else for (const each of traced) this.#log.info(this.#fieldsOf(each), each.point);
  }

  /** Objects of one shape: every change makes one. */
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

  /** A store that cannot be read must not keep a write from being answered. */
  #labelOf(credential: string | null): string | undefined {
    if (credential === null) return undefined;
    try {
      return this.#labels.memo(credential) || undefined;
    } catch {
      return undefined;
    }
  }
}
