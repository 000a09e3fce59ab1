import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { Traced } from '../../domain/outbox/trace.ts';
import type { RoleName } from '../../domain/role.ts';
import { StorageError, type Clock, type StorageFault, type WriteOptions } from '../../service/ports.ts';
import type { Change } from '../../service/tables.ts';
import type { StoreWriter } from '../store/opened-store.ts';
import type { CommandOf, CommandResult, UseCaseName, WriteRequest } from '../../service/writer.ts';
import {
  errorOf,
  type BatchMessage,
  type CommitMeasure,
  type DiskSpaceMessage,
  type OutcomeMessage,
  type WriterData,
  type WriterMessage,
  startWorker,
} from './worker.ts';
import { minuteMs } from '../../domain/time.ts';

/** If a write takes longer than this, the disk hangs, in ms. */
const stuckMs = minuteMs;

/** This many writes are posted before the turn ends, so that the writer thread starts early. */
const maxGathered = 16;

/** `since`: when the write was requested (monotonic ms, `Clock.monotonic`). */
type WaitingWrite = Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'> & { since: number };

/** The inputs and callbacks of the writer thread. */
export type WriterOptions = {
  role: RoleName;
  /** Whether changes of licenses are kept (`history.keep`). */
  recordsHistory: () => boolean;
  onCommit: (measure: CommitMeasure) => void;
  /** Called with the changed data of verifies, before the caller of the write gets its result. */
  onChanged: (changes: readonly Change[]) => void;
  /** Called with the steps of operations in order, usually before the caller of the write gets its result. */
  onTraced: (traced: readonly Traced[]) => void;
  /** Called when the disk is full or has free space again. Called at the start only if the disk is full. */
  onDiskSpace: (isFull: boolean) => void;
};

/** Starts the writer thread on a database. Resolves when the thread is ready. */
export async function startWriter(
  databasePath: string,
  clock: Clock,
  options: WriterOptions,
): Promise<WriterThread> {
  const worker = startWorker('writer', { databasePath, role: options.role } satisfies WriterData);
  const [{ isFull }] = (await once(worker, 'message')) as [DiskSpaceMessage];
  const writer = new WriterThread(worker, clock, options);
  if (isFull) writer.setFull(isFull);
  return writer;
}

/** The writer thread, as the server thread sees it. */
export class WriterThread implements StoreWriter, AsyncDisposable {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #options: WriterOptions;
  /** The unanswered writes. Their results come in the same order. */
  readonly #waiting: WaitingWrite[] = [];
  /** The writes of this turn of the event loop, which are posted together. */
  readonly #gathered: WriteRequest[] = [];
  /** Steps of operations that were not reported yet (`piecesOf`). */
  readonly #unreported: string[] = [];
  readonly #lost = Promise.withResolvers<never>();
  readonly #exited = Promise.withResolvers<void>();
  #failure: StorageError | null = null;
  #isFull = false;
  #isClosing = false;

  /** Use `startWriter`. */
  constructor(worker: Worker, clock: Clock, options: WriterOptions) {
    this.#worker = worker;
    this.#clock = clock;
    this.#options = options;
    this.#lost.promise.catch(() => undefined);
    worker.on('error', (error) => this.#lose(error));
    worker.on('exit', (code) => {
      this.#exited.resolve();
      if (!this.#isClosing) this.#lose(new Error(`the writer's thread ended with ${code}`));
    });
    worker.on('message', (message: BatchMessage | DiskSpaceMessage) => {
      if ('isFull' in message) this.setFull(message.isFull);
      else this.#settle(message);
    });
  }

  /** Rejects when the storage fails or the thread ends; pending until then. */
  get lost(): Promise<never> {
    return this.#lost.promise;
  }

  /** While the disk is full, only essential writes are accepted. */
  get storage(): 'ok' | 'full' {
    return this.#isFull ? 'full' : 'ok';
  }

  /** Whether the oldest write has waited so long that the disk must hang. */
  get isStuck(): boolean {
    const [first] = this.#waiting;
    return first !== undefined && this.#clock.monotonic() - first.since > stuckMs;
  }

  /** Refuses every later write, because the store is damaged. */
  disable(cause: unknown): void {
    this.#failure ??= new StorageError('failed', cause);
  }

  setFull(isFull: boolean): void {
    this.#isFull = isFull;
    this.#options.onDiskSpace(isFull);
  }

  async write<Name extends UseCaseName>(
    name: Name,
    command: CommandOf<Name>,
    writeOptions: Partial<WriteOptions> = {},
  ): Promise<CommandResult<Name>> {
    if (this.#failure !== null) throw this.#failure;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.push({ resolve, reject, since: this.#clock.monotonic() });
    if (this.#gathered.length === 0) setImmediate(() => this.#post());
    this.#gathered.push({ name, command, writeOptions });
    if (this.#gathered.length === maxGathered) this.#post();
    // The compiler does not know that a name and its result belong together.
    return (await promise) as CommandResult<Name>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    this.#post();
    const close: WriterMessage = 'close';
    this.#worker.postMessage(close);
    await this.#exited.promise;
    // One piece per turn: all at once would be more than the log buffers.
    while (this.#unreported.length > 0) await nextTurn();
  }

  /** One message for many writes: one message per write would take several times as long. */
  #post(): void {
    if (this.#gathered.length === 0) return;
    try {
      const message: WriterMessage = {
        writes: JSON.stringify(this.#gathered.splice(0)),
        now: this.#clock.now(),
        monotonic: this.#clock.monotonic(),
        recordsHistory: this.#options.recordsHistory(),
      };
      this.#worker.postMessage(message);
    } catch (error) {
      // Later results would be mistaken for the results of these writes.
      this.#lose(error);
    }
  }

  #settle({ outcomes, traced, commit, broken }: BatchMessage): void {
    this.#options.onCommit(commit);
    this.#report(traced);
    for (const outcome of JSON.parse(outcomes) as OutcomeMessage[]) {
      const waiting = this.#waiting.shift();
      if ('result' in outcome) {
        if (outcome.changes !== undefined) this.#options.onChanged(outcome.changes);
        waiting?.resolve(outcome.result);
      } else {
        if ('storageFault' in outcome && outcome.storageFault === 'commit_failed')
          this.#options.onChanged(['anything']);
        waiting?.reject(errorOf(outcome));
      }
    }
    // The thread has also refused the writes that it had not started.
    if (broken !== null) this.#lose(new Error(broken), 'failed');
  }

  /** Reports the first piece at once, and each later piece in its own turn, so that requests are answered in between. */
  #report(pieces: readonly string[]): void {
    const isReporting = this.#unreported.length > 0;
    this.#unreported.push(...pieces);
    if (!isReporting) this.#reportNext();
  }

  #reportNext(): void {
    const piece = this.#unreported.shift();
    if (piece === undefined) return;
    this.#options.onTraced(JSON.parse(piece) as Traced[]);
    if (this.#unreported.length > 0) setImmediate(() => this.#reportNext());
  }

  /** `fault`: the fault of the waiting writes. */
  #lose(cause: unknown, fault: StorageFault = 'commit_failed'): void {
    this.#failure ??= new StorageError('failed', cause);
    this.#options.onChanged(['anything']);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(new StorageError(fault, cause));
    this.#lost.reject(this.#failure);
  }
}
