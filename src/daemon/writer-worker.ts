import { dirname } from 'node:path';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { isEssential } from '../service/essential.ts';
import { isRefusal } from '../service/idempotency.ts';
import { runUseCase } from '../service/use-cases.ts';
import { backUp } from '../store/backup.ts';
import { Ballast } from '../store/ballast.ts';
import { prepareCommitter, type Committer } from '../store/commit.ts';
import { foldLog, openWriting, type WritingConnection } from '../store/connection.ts';
import { ReservedCommitter } from '../store/reserve.ts';
import { sha256, systemRandom } from './random.ts';
import { Room } from './room.ts';
import {
  outcomeMessage,
  type BatchMessage,
  type CopyMessage,
  type WriteMessage,
  type WriterMessage,
} from './writer-message.ts';

type Port = NonNullable<typeof parentPort>;

/** More than this many writes do not share a commit, so that the first of them is not kept waiting. */
const largestBatch = 512;

/** What the ballast is made of: random, and longer than file systems look back to compress it, in bytes. */
const fillingBytes = 1024 * 1024;

/**
 * The writer's thread: takes what has gathered while it was busy, commits it as one, then answers.
 * There is no timer: the commit itself sets the pace.
 */
function work(port: Port, databasePath: string): void {
  const connection = openWriting(databasePath);
  const plain = prepareCommitter<WriteMessage>(connection, {
    run: (transaction, { request, now, steady }) =>
      runUseCase(transaction, request, { now, steady, random: systemRandom, digest: sha256 }),
    isRefusal,
  });
  const ballast = new Ballast(dirname(databasePath), systemRandom.bytes(fillingBytes));
  const committer = new ReservedCommitter(plain, ballast, ({ request }) => isEssential(request.name));
  const room = new Room(port, ballast);
  const receive = (message: WriterMessage): void => {
    if (message === 'close') {
      room[Symbol.dispose]();
      if (committer.broken === null) foldLog(connection);
      connection[Symbol.dispose]();
      port.close();
    } else if ('copyTo' in message) {
      void copy(connection, message).then((answer) => {
        port.postMessage(answer);
      });
    } else {
      const { batch, next } = gather(port, message);
      port.postMessage(commit(committer, batch));
      room.look();
      if (next !== null) receive(next);
    }
  };
  port.on('message', receive);
  room.begin();
}

/** The writes that came by now, and what else came after them, if anything. */
function gather(port: Port, first: WriteMessage): { batch: WriteMessage[]; next: WriterMessage | null } {
  const batch = [first];
  while (batch.length < largestBatch) {
    const message = receiveMessageOnPort(port)?.message as WriterMessage | undefined;
    if (message === undefined) break;
    if (message === 'close' || 'copyTo' in message) return { batch, next: message };
    batch.push(message);
  }
  return { batch, next: null };
}

function commit(committer: Committer<WriteMessage>, batch: readonly WriteMessage[]): BatchMessage {
  const startedAt = performance.now();
  const outcomes = committer.commitBatch(batch);
  const measure = { durationMs: performance.now() - startedAt, size: batch.length };
  return {
    outcomes: batch.map(({ id }, index) =>
      outcomeMessage(id, outcomes[index] ?? { error: new Error('the committer gave no outcome') }),
    ),
    commit: measure,
    isBroken: committer.broken !== null,
  };
}

/** Copies the database beside the writes that come meanwhile. What goes wrong with a copy breaks nothing else. */
async function copy(connection: WritingConnection, { id, copyTo }: CopyMessage): Promise<BatchMessage> {
  const outcome = await backUp(connection, copyTo).then(
    () => ({ result: null }),
    (error: unknown) => ({ error }),
  );
  return { outcomes: [outcomeMessage(id, outcome)], commit: null, isBroken: false };
}

if (parentPort !== null) work(parentPort, (workerData as { databasePath: string }).databasePath);
