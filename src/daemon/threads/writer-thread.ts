import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { Traced } from '../../domain/outbox/operation.ts';
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
} from './writer-message.ts';
import { startWorker } from './start-worker.ts';

/** A write that takes longer than this, in ms, means that the disk hangs. */
const stuckMs = 60_000;

/** So many writes are posted before the turn ends: the writer's thread works while the server's reads on. */
const enoughToPost = 16;

/** `since`: when it was asked for (`Clock.elapsed`). */
type WaitingWrite = Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'> & { since: number };

/** What the writer's thread is asked and tells. */
export type WriterOptions = {
  role: RoleName;
  /** Whether changes of licenses are remembered now (`history.keep`). */
  keepsHistory: () => boolean;
  onCommit: (measure: CommitMeasure) => void;
  /** What a write changed of what verifies are answered from, before its caller hears of it. */
  onChanged: (changes: readonly Change[]) => void;
  /** What happened to operations in a write, in order; before its caller hears of it, unless very many wait to be told. */
  onTraced: (traced: readonly Traced[]) => void;
  /** The disk is full, or has space again; called at the start only when it is full. */
  onDiskSpace: (isFull: boolean) => void;
};

/** Starts the writer's thread on a database; resolves when it is ready to write. */
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

/** The server's side of the writer's thread. */
export class WriterThread implements StoreWriter, AsyncDisposable {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #options: WriterOptions;
  /** The unanswered writes in their order, in which they are answered. */
  readonly #waiting: WaitingWrite[] = [];
  /** The writes of this turn of the event loop that are to be posted together. */
  readonly #gathered: WriteRequest[] = [];
  /** What happened to operations and was not told yet (`piecesOf`). */
  readonly #untold: string[] = [];
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

  /** Rejects when the storage has failed or the thread has ended; pending until then. */
  get lost(): Promise<never> {
    return this.#lost.promise;
  }

  /** While it is full, only essential writes are accepted. */
  get storage(): 'ok' | 'full' {
    return this.#isFull ? 'full' : 'ok';
  }

  /** Whether the oldest write has waited so long that the disk must hang. */
  get isStuck(): boolean {
    const [first] = this.#waiting;
    return first !== undefined && this.#clock.elapsed() - first.since > stuckMs;
  }

  /** Refuses every later write, because the store is damaged. */
  refuse(cause: unknown): void {
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
    this.#waiting.push({ resolve, reject, since: this.#clock.elapsed() });
    if (this.#gathered.length === 0) setImmediate(() => this.#post());
    this.#gathered.push({ name, command, writeOptions });
    if (this.#gathered.length === enoughToPost) this.#post();
    // The compiler cannot see that a name and its result belong together.
    return (await promise) as CommandResult<Name>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    this.#post();
    const close: WriterMessage = 'close';
    this.#worker.postMessage(close);
    await this.#exited.promise;
    // In turns here, too: at once, they would be more than the log keeps.
    while (this.#untold.length > 0) await nextTurn();
  }

  /** One message for many writes: to send each by itself takes several times as long. */
  #post(): void {
    if (this.#gathered.length === 0) return;
    try {
      const message: WriterMessage = {
        writes: JSON.stringify(this.#gathered.splice(0)),
        now: this.#clock.now(),
        elapsed: this.#clock.elapsed(),
        keepsHistory: this.#options.keepsHistory(),
      };
      this.#worker.postMessage(message);
    } catch (error) {
      // What follows would be taken for the answers to these.
      this.#lose(error);
    }
  }

  #settle({ outcomes, traced, commit, broken }: BatchMessage): void {
    this.#options.onCommit(commit);
    this.#tell(traced);
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
    // What the thread had not begun it has refused as well.
    if (broken !== null) this.#lose(new Error(broken), 'failed');
  }

  /** Tells the first piece at once, and each that follows in a turn of its own: others are answered meanwhile. */
  #tell(pieces: readonly string[]): void {
    const isTelling = this.#untold.length > 0;
    this.#untold.push(...pieces);
    if (!isTelling) this.#tellNext();
  }

  #tellNext(): void {
    const piece = this.#untold.shift();
    if (piece === undefined) return;
    this.#options.onTraced(JSON.parse(piece) as Traced[]);
    if (this.#untold.length > 0) setImmediate(() => this.#tellNext());
  }

  /** `fault`: of the writes that wait. */
  #lose(cause: unknown, fault: StorageFault = 'commit_failed'): void {
    this.#failure ??= new StorageError('failed', cause);
    this.#options.onChanged(['anything']);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(new StorageError(fault, cause));
    this.#lost.reject(this.#failure);
  }
}
