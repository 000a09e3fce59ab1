import { dirname } from 'node:path';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { isFailure } from '../../domain/problem/problem.ts';
import { isEssential, type WriteRequest } from '../../service/writer.ts';
import type { WriterContext } from '../../service/ports.ts';
import { loadUseCases, runUseCase } from '../../service/run.ts';
import { ReserveFile, ReservedCommitter } from '../../store/sqlite/reserve.ts';
import { maxBatchSize, prepareCommitter, type Committer } from '../../store/sqlite/commit.ts';
import { checkpoint, openWriting } from '../../store/sqlite/connection.ts';
import { sha256, systemRandom } from '../system/machine.ts';
import {
  type DiskSpaceMessage,
  outcomeMessage,
  piecesOf,
  textOf,
  type BatchMessage,
  type WriterData,
  type WriterMessage,
  type WritesMessage,
} from './worker.ts';

/** How often a full disk is checked again, in ms. */
const recheckMs = 1000;

/** Reports when the disk is full, and allocates the reserve file again as soon as there is free space. */
export class DiskSpaceWatch implements Disposable {
  readonly #port: MessagePort;
  readonly #reserve: ReserveFile;
  #timer: NodeJS.Timeout | null = null;

  constructor(port: MessagePort, reserve: ReserveFile) {
    this.#port = port;
    this.#reserve = reserve;
  }

  /** Allocates the reserve file and reports the result, which says that the writer is ready. */
  begin(): void {
    if (this.#reserve.take()) this.#report(false);
    else this.check();
  }

  /** Checks whether the reserve file had to be released. */
  check(): void {
    if (this.#reserve.isTaken || this.#timer !== null) return;
    this.#report(true);
    this.#timer = setInterval(() => {
      if (!this.#reserve.take()) return;
      this[Symbol.dispose]();
      this.#report(false);
    }, recheckMs);
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #report(isFull: boolean): void {
    const message: DiskSpaceMessage = { isFull };
    this.#port.postMessage(message);
  }
}

type Port = NonNullable<typeof parentPort>;
type Write = { request: WriteRequest; context: WriterContext };

/** Bytes of random data that the reserve file repeats: more than the window of a compressing file system. */
const fillBytes = 1024 * 1024;

/**
 * The writer thread takes the writes that arrived during the last commit, commits them together, and sends their
 * results. There is no timer: the duration of a commit decides the size of the next batch.
 */
function work(port: Port, { databasePath, role }: WriterData): void {
  const connection = openWriting(databasePath, role);
  const reserve = new ReserveFile(dirname(databasePath), () => systemRandom.bytes(fillBytes));
  const inner = prepareCommitter<Write>(connection, {
    run: (transaction, { request, context }) => runUseCase(transaction, request, context),
    isFailure,
    isOutOfSpace: () => reserve.isOutOfSpace(),
  });
  const committer = new ReservedCommitter(inner, reserve, ({ request }) => isEssential(request.name));
  const diskSpace = new DiskSpaceWatch(port, reserve);
  const receive = async (message: WriterMessage): Promise<void> => {
    if (message === 'close') {
      diskSpace[Symbol.dispose]();
      if (committer.broken === null) checkpoint(connection);
      connection[Symbol.dispose]();
      port.close();
    } else {
      const { batch, isClosed } = gather(port, message);
      await loadUseCases(batch.map(({ request }) => request.name));
      const committed = await commit(committer, batch);
      // Reported before the callers of refused writes can read the status.
      diskSpace.check();
      port.postMessage(committed);
      if (isClosed) await receive('close');
    }
  };
  // One message after the other, also while a feature is loaded. A rejection ends the thread, as an exception does.
  let last = Promise.resolve();
  port.on('message', (message: WriterMessage) => {
    last = last.then(() => receive(message));
  });
  diskSpace.begin();
}

/** The writes that have arrived, and whether the thread closes after them. */
function gather(port: Port, first: WritesMessage): { batch: Write[]; isClosed: boolean } {
  const batch = writesOf(first);
  while (batch.length < maxBatchSize) {
    const message = receiveMessageOnPort(port)?.message as WriterMessage | undefined;
    if (message === undefined) break;
    if (message === 'close') return { batch, isClosed: true };
    batch.push(...writesOf(message));
  }
  return { batch, isClosed: false };
}

function writesOf({ writes, ...times }: WritesMessage): Write[] {
  const context: WriterContext = { ...times, random: systemRandom, digest: sha256 };
  return (JSON.parse(writes) as WriteRequest[]).map((request) => ({ request, context }));
}

async function commit(committer: Committer<Write>, batch: readonly Write[]): Promise<BatchMessage> {
  const startedAt = performance.now();
  const outcomes = await committer.commitBatch(batch);
  const measure = { durationMs: performance.now() - startedAt, size: batch.length };
  return {
    outcomes: JSON.stringify(outcomes.map((outcome) => outcomeMessage(outcome))),
    traced: piecesOf(outcomes),
    commit: measure,
    broken: committer.broken === null ? null : textOf(committer.broken.cause),
  };
}

if (parentPort !== null) work(parentPort, workerData as WriterData);
