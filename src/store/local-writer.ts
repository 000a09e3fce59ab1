import type { Context } from '../service/ports.ts';
import type { Writer } from '../service/writer.ts';
import type { Transaction } from '../service/tables.ts';
import type { CommandResult, WriteRequest } from '../service/writer.ts';
import { prepareCommitter } from './commit.ts';
import type { WritingConnection } from './connection.ts';

/** The use cases, as a writer runs them. */
export type UseCaseRun = {
  run: (transaction: Transaction, request: WriteRequest, context: Context) => unknown;
  isRefusal: (result: unknown) => boolean;
  /** WriteOptions anew for each write. */
  context: () => Context;
};

/** Writes in the caller's own thread, one commit for each command: for tests and the simulation. */
export function localWriter(connection: WritingConnection, { run, isRefusal, context }: UseCaseRun): Writer {
  const committer = prepareCommitter<WriteRequest>(connection, {
    run: (transaction, request) => run(transaction, request, context()),
    isRefusal,
  });
  return {
    async write(name, command, writeOptions = {}) {
      const [outcome] = committer.commitBatch([{ name, command, writeOptions }]);
      if (outcome === undefined) throw new Error('the committer gave no outcome');
      if ('error' in outcome) throw outcome.error;
      // The name asked for decides what its use case gives back.
      return outcome.result as CommandResult<typeof name>;
    },
  };
}
