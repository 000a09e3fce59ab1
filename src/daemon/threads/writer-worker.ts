import { dirname } from 'node:path';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { isRefusal } from '../../service/access/idempotency.ts';
import { isEssential } from '../../service/lifecycle/full-disk.ts';
import type { WriterContext } from '../../service/ports.ts';
import { runUseCase } from '../../service/run.ts';
import type { WriteRequest } from '../../service/writer.ts';
import { Ballast } from '../../store/sqlite/ballast.ts';
import { largestBatch, prepareCommitter, type Committer } from '../../store/sqlite/commit.ts';
import { checkpoint, openWriting } from '../../store/sqlite/connection.ts';
import { ReservedCommitter } from '../../store/sqlite/reserve.ts';
import { sha256, systemRandom } from '../system/random.ts';
import {
  type DiskSpaceMessage,
  outcomeMessage,
  piecesOf,
  textOf,
  type BatchMessage,
  type WriterData,
  type WriterMessage,
  type WritesMessage,
} from './writer-message.ts';

/** How often a full disk is looked at again, in ms. */
const lookAgainMs = 1000;

/** Tells over the port when the disk is full, and takes the ballast again as soon as there is room. */
export class DiskSpaceWatch implements Disposable {
  readonly #port: MessagePort;
  readonly #ballast: Ballast;
  #timer: NodeJS.Timeout | null = null;

  constructor(port: MessagePort, ballast: Ballast) {
    this.#port = port;
    this.#ballast = ballast;
  }

  /** Takes the ballast and says how it is: the writer is ready. */
  begin(): void {
    if (this.#ballast.take()) this.#tell(false);
    else this.look();
  }

  /** Looks whether the ballast had to be given back. */
  look(): void {
    if (this.#ballast.isTaken || this.#timer !== null) return;
    this.#tell(true);
    this.#timer = setInterval(() => {
      if (!this.#ballast.take()) return;
      this[Symbol.dispose]();
      this.#tell(false);
    }, lookAgainMs);
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #tell(isFull: boolean): void {
    const message: DiskSpaceMessage = { isFull };
    this.#port.postMessage(message);
  }
}

type Port = NonNullable<typeof parentPort>;
type Write = { request: WriteRequest; context: WriterContext };

/** Bytes of random data that the ballast repeats: more than the window of a compressing file system. */
const fillingBytes = 1024 * 1024;

/**
 * The writer's thread: takes the writes that arrived during the last commit, commits them together, and
 * answers. There is no timer: the duration of a commit decides the size of the next.
 */
function work(port: Port, { databasePath, role }: WriterData): void {
  const connection = openWriting(databasePath, role);
  const ballast = new Ballast(dirname(databasePath), () => systemRandom.bytes(fillingBytes));
  const plain = prepareCommitter<Write>(connection, {
    run: (transaction, { request, context }) => runUseCase(transaction, request, context),
    isRefusal,
    lacksRoom: () => ballast.lacksRoom(),
  });
  const committer = new ReservedCommitter(plain, ballast, ({ request }) => isEssential(request.name));
  const room = new DiskSpaceWatch(port, ballast);
  const receive = async (message: WriterMessage): Promise<void> => {
    if (message === 'close') {
      room[Symbol.dispose]();
      if (committer.broken === null) checkpoint(connection);
      connection[Symbol.dispose]();
      port.close();
    } else {
      const { batch, isClosed } = gather(port, message);
      const committed = await commit(committer, batch);
      // Told before those who are refused for it can ask.
      room.look();
      port.postMessage(committed);
      if (isClosed) await receive('close');
    }
  };
  // A rejection ends the thread, as an exception does.
  port.on('message', (message: WriterMessage) => void receive(message));
  room.begin();
}

/** The writes that have arrived, and whether the thread is to close after them. */
function gather(port: Port, first: WritesMessage): { batch: Write[]; isClosed: boolean } {
  const batch = writesOf(first);
  while (batch.length < largestBatch) {
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
