import type { Readiness } from '../http/app.ts';
import type { StorageState } from '../service/status.ts';
import type { LocalStore, StoreWriter } from './store/opened-store.ts';

/** The phase of a process, including its known failures. */
type Phase = Exclude<Readiness['state'], 'storage_unavailable'>;

const readinessByPhase: Readonly<Record<Phase, Readiness>> = {
  starting: { state: 'starting', reasons: ['starting'] },
  ready: { state: 'ready', reasons: [] },
  leaving: { state: 'leaving', reasons: ['draining'] },
  draining: { state: 'draining', reasons: ['draining'] },
  store_damaged: { state: 'store_damaged', reasons: ['store_damaged'] },
  storage_failed: { state: 'storage_failed', reasons: ['storage_failed'] },
};

/** Whether this process accepts requests, and whether it works: the answers to probes. */
export class Health {
  readonly #writer: Pick<StoreWriter, 'storage' | 'isStuck'>;
  readonly #local: LocalStore | null;
  #phase: Phase = 'starting';

  constructor(writer: Pick<StoreWriter, 'storage' | 'isStuck'>, local: LocalStore | null) {
    this.#writer = writer;
    this.#local = local;
  }

  get phase(): Phase {
    return this.#phase;
  }

  setPhase(phase: Phase): void {
    this.#phase = phase;
  }

  get storage(): StorageState {
    return this.#phase === 'store_damaged' ? 'damaged' : this.#writer.storage;
  }

  /** Ready also when only reads work: every other node has the same database. */
  readiness(): Readiness {
    if (this.#phase !== 'ready') return readinessByPhase[this.#phase];
    const { storage } = this.#writer;
    switch (storage) {
      case 'ok':
        return readinessByPhase.ready;
      case 'full':
      case 'read_only':
        return { state: 'ready', reasons: [`storage_${storage}`] };
      case 'unavailable':
      case 'slow':
      case 'refused':
        return { state: 'storage_unavailable', reasons: [`storage_${storage}`] };
      default:
        return storage satisfies never;
    }
  }

  /** Why this process must be restarted; empty: it works. */
  liveness(): readonly string[] {
    if (this.#phase === 'storage_failed') return ['storage_failed'];
    if (this.#writer.isStuck) return ['store_stuck'];
    if (this.#local === null) return [];
    try {
      this.#local.reader.settings.get('instance');
      return [];
    } catch {
      return ['store_unreadable'];
    }
  }
}
