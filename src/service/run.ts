import { recordAct } from './access/audit.ts';
import { runOnce } from './access/idempotency.ts';
import type { Context } from './ports.ts';
import type { Transaction } from './tables.ts';
import * as useCases from './use-cases.ts';
import type { CommandOf, CommandResult, UseCaseName, WriteRequest } from './writer.ts';

const byName: typeof useCases = useCases;

/**
 * Runs one use case: synchronous, whole, in the transaction it is given; under its idempotency key, once.
 * What it did is put on record there too, if it is an act of a person.
 */
export function runUseCase<Name extends UseCaseName>(
  transaction: Transaction,
  request: WriteRequest<Name>,
  context: Context,
): CommandResult<Name> {
  const { name, command, writeOptions } = request;
  // A name and its command belong together, which the compiler cannot follow through the list.
  const useCase = byName[name] as (
    transaction: Transaction,
    command: CommandOf<Name>,
    context: Context,
  ) => CommandResult<Name>;
  const run = (): CommandResult<Name> => {
    const result = useCase(transaction, command, context);
    recordAct(transaction, request, result, context);
    return result;
  };
  const { idempotency } = writeOptions;
  if (idempotency === undefined || idempotency === null) return run();
  return runOnce(transaction, idempotency, context, run) as CommandResult<Name>;
}
