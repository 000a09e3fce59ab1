import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { StorageError, type Clock, type Writer } from '../service/ports.ts';
import type { CommandResult, UseCaseName } from '../service/use-cases.ts';
import { errorOf, type BatchMessage, type CommitMeasure, type WriteMessage } from './writer-message.ts';

/** The writer in its own thread, as the server's thread sees it. */
export interface WriterThread extends Writer, AsyncDisposable {
  /** Rejects when the storage failed or the thread is lost: no write is taken any more. Pending otherwise. */
  readonly lost: Promise<never>;
}

type Waiting = { resolve: (result: unknown) => void; reject: (error: unknown) => void };

/** Starts the writer's thread on a database; resolves when it is ready to write. */
export async function startWriter(
  databasePath: string,
  clock: Clock,
  onCommit: (measure: CommitMeasure) => void,
): Promise<WriterThread> {
  // The same file name from source and from the build.
  const worker = new Worker(new URL(`./writer-worker${extname(import.meta.filename)}`, import.meta.url), {
    workerData: { databasePath },
    name: 'writer',
  });
  await once(worker, 'message');
  const waiting = new Map<number, Waiting>();
  const lost = Promise.withResolvers<never>();
  lost.promise.catch(() => undefined);
  let isClosing = false;
  const lose = (cause: unknown): void => {
    if (isClosing) return;
    const error = new StorageError('failed', cause);
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
    lost.reject(error);
  };
  worker.on('error', lose);
  const exited = Promise.withResolvers<void>();
  worker.on('exit', (code) => {
    exited.resolve();
    lose(new Error(`the writer's thread ended with ${code}`));
  });
  worker.on('message', ({ outcomes, commit }: BatchMessage) => {
    onCommit(commit);
    for (const outcome of outcomes) {
      const waiter = waiting.get(outcome.id);
      waiting.delete(outcome.id);
      if ('result' in outcome) waiter?.resolve(outcome.result);
      else waiter?.reject(errorOf(outcome));
      if ('storageFault' in outcome && outcome.storageFault === 'failed') lost.reject(errorOf(outcome));
    }
  });
  let lastId = 0;
  const write = async <Name extends UseCaseName>(
    name: Name,
    command: Parameters<Writer['write']>[1],
    idempotency: Parameters<Writer['write']>[2] = null,
  ): Promise<CommandResult<Name>> => {
    lastId += 1;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    waiting.set(lastId, { resolve, reject });
    const request = { name, command, idempotency };
    const message: WriteMessage = { id: lastId, request, now: clock.now(), steady: clock.steady() };
    worker.postMessage(message);
    // The name asked for decides what its use case gives back.
    return (await promise) as CommandResult<Name>;
  };
  return {
    write,
    lost: lost.promise,
    async [Symbol.asyncDispose]() {
      isClosing = true;
      worker.postMessage('close');
      await exited.promise;
    },
  };
}
