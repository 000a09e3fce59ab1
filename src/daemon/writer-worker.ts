import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { isRefusal } from '../service/idempotency.ts';
import { runUseCase } from '../service/use-cases.ts';
import { prepareCommitter } from '../store/commit.ts';
import { openWriting } from '../store/connection.ts';
import { sha256, systemRandom } from './random.ts';
import { outcomeMessage, type BatchMessage, type WriteMessage } from './writer-message.ts';

/** More than this many writes do not share a commit, so that the first of them is not kept waiting. */
const largestBatch = 512;

/**
 * The writer's thread: takes what has gathered while it was busy, commits it as one, then answers.
 * There is no timer: the commit itself sets the pace.
 */
function work(port: NonNullable<typeof parentPort>, databasePath: string): void {
  const connection = openWriting(databasePath);
  const committer = prepareCommitter<WriteMessage>(connection, {
    run: (transaction, { request, now, steady }) =>
      runUseCase(transaction, request, { now, steady, random: systemRandom, digest: sha256 }),
    isRefusal,
  });
  port.on('message', (first: WriteMessage | 'close') => {
    if (first === 'close') {
      connection[Symbol.dispose]();
      port.close();
      return;
    }
    const batch = gather(port, first);
    const startedAt = performance.now();
    const outcomes = committer.commitBatch(batch);
    const commit = { durationMs: performance.now() - startedAt, size: batch.length };
    const message: BatchMessage = {
      outcomes: batch.map(({ id }, index) =>
        outcomeMessage(id, outcomes[index] ?? { error: new Error('the committer gave no outcome') }),
      ),
      commit,
      isBroken: committer.broken !== null,
    };
    port.postMessage(message);
  });
  port.postMessage('ready');
}

function gather(port: NonNullable<typeof parentPort>, first: WriteMessage): WriteMessage[] {
  const batch = [first];
  while (batch.length < largestBatch) {
    const next = receiveMessageOnPort(port);
    if (next === undefined) break;
    batch.push(next.message as WriteMessage);
  }
  return batch;
}

if (parentPort !== null) work(parentPort, (workerData as { databasePath: string }).databasePath);
