import { AsyncLocalStorage } from 'node:async_hooks';
import { StorageError } from '../../../src/service/ports.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import type { UseCaseName } from '../../../src/service/writer.ts';
import type { Faults } from './machine.ts';

const cause = new Error('a step after a commit fails');

/** The request of a caller whose steps run, and whether its change is committed. */
const requests = new AsyncLocalStorage<{ isCommitted: boolean }>();

/** Runs a request of a caller, so that the steps after its commit are known from those of other requests. */
export function asRequest<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  return requests.run({ isCommitted: false }, ask);
}

/** Whether the simulation made the step fail. */
export function isFaultAfterCommit(error: unknown): boolean {
  return error instanceof StorageError && error.cause === cause;
}

/** Changes of callers, after whose commit steps follow. */
const changes: ReadonlySet<UseCaseName> = new Set<UseCaseName>(['queueChange', 'queueCoupon']);

/** Makes the next step that follows the commit of a caller's change fail, as the faults say. */
export class StepsAfterCommit {
  readonly #faults: Faults;

  constructor(faults: Faults) {
    this.#faults = faults;
  }

  /** Throws where keeping an answer is the step that fails. */
  beforeWrite(name: UseCaseName): void {
    if (name === 'storeFinalResponse') this.#fail('keep');
  }

  /** A refusal commits nothing. */
  afterWrite(name: UseCaseName, result: { ok: boolean }): void {
    const request = requests.getStore();
    if (request !== undefined && changes.has(name)) request.isCommitted = result.ok;
  }

  /** The store as the requests of callers read it. */
  reader(transaction: Transaction): Transaction {
    const { snapshots, operations } = transaction;
    return {
      ...transaction,
      snapshots: this.#failing(snapshots),
      operations: this.#failing(operations),
    };
  }

  #failing<Table extends object>(table: Table): Table {
    return new Proxy(table, {
      get: (target, name): unknown => {
        this.#fail('read');
        return Reflect.get(target, name);
      },
    });
  }

  #fail(step: NonNullable<Faults['afterCommit']>): void {
    if (this.#faults.afterCommit !== step || requests.getStore()?.isCommitted !== true) return;
    this.#faults.afterCommit = null;
    throw new StorageError(step === 'read' ? 'unreadable' : 'full', cause);
  }
}
