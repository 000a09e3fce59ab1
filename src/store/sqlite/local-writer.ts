import type { WriterContext } from '../../service/ports.ts';
import type { Awaitable, Transaction } from '../../service/tables.ts';
import type { CommandResult, WriteRequest, Writer } from '../../service/writer.ts';
import { prepareCommitter, type CommandOutcome } from './commit.ts';
import type { WritingConnection } from './connection.ts';

export type UseCaseRun = {
  run: (transaction: Transaction, request: WriteRequest, context: WriterContext) => Awaitable<unknown>;
  isFailure: (result: unknown) => boolean;
  /** Called once for each write. */
  context: () => WriterContext;
};

/** A writer in the caller's thread, with one commit for each command. */
export function localWriter(connection: WritingConnection, { run, isFailure, context }: UseCaseRun): Writer {
  type Posted = { request: WriteRequest; context: WriterContext };
  const committer = prepareCommitter<Posted>(connection, {
    run: (transaction, posted) => run(transaction, posted.request, posted.context),
    isFailure,
  });
  let last: Promise<CommandOutcome[]> = Promise.resolve([]);
  return {
    async write(name, command, writeOptions = {}) {
      const posted = { request: { name, command, writeOptions }, context: context() };
      last = last.then(() => committer.commitBatch([posted]));
      const [outcome] = await last;
      if (outcome === undefined) throw new Error('the committer returned no outcome');
      if ('error' in outcome) throw outcome.error;
      // The compiler cannot infer the result type from the name.
      return outcome.result as CommandResult<typeof name>;
    },
  };
}
