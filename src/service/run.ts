import { recordAct } from './access/audit.ts';
import { runOnce } from './access/idempotency.ts';
import type { Context } from './ports.ts';
import type { Awaitable } from './tables.ts';
import * as useCases from './use-cases.ts';
import type { CommandOf, CommandResult, TransactionOf, UseCaseName, WriteRequest } from './writer.ts';

const byName: typeof useCases = useCases;

/**
 * Runs one use case whole, in the transaction it is given; under its idempotency key, once. What it did is
 * put on record there too, if it is an act of a person. It waits for nothing but its tables.
 */
export async function runUseCase<Name extends UseCaseName>(
  transaction: TransactionOf<Name>,
  request: WriteRequest<Name>,
  context: Context,
): Promise<CommandResult<Name>> {
  const { name, command, writeOptions } = request;
  // A name and its command belong together, which the compiler cannot follow through the list.
  const useCase = byName[name] as (
    transaction: TransactionOf<Name>,
    command: CommandOf<Name>,
    context: Context,
  ) => Awaitable<CommandResult<Name>>;
  const run = async (): Promise<CommandResult<Name>> => {
    const result = await useCase(transaction, command, context);
    await recordAct(transaction, request, result, context);
    return result;
  };
  const { idempotency } = writeOptions;
  if (idempotency === undefined || idempotency === null) return await run();
  return (await runOnce(transaction, idempotency, context, run)) as CommandResult<Name>;
}
