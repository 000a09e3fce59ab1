import { recordAudit } from './access/audit.ts';
import { runOnce } from './access/idempotency.ts';
import type { Context } from './ports.ts';
import type { Awaitable } from './tables.ts';
import * as useCases from './use-cases.ts';
import type { CommandOf, CommandResult, TransactionOf, UseCaseName, WriteRequest } from './writer.ts';

const byName: typeof useCases = useCases;

/**
 * Runs one use case in a transaction: under an idempotency key once, and audited if it is what a person does.
 * Awaits nothing but the tables.
 */
export async function runUseCase<Name extends UseCaseName>(
  transaction: TransactionOf<Name>,
  request: WriteRequest<Name>,
  context: Context,
): Promise<CommandResult<Name>> {
  const { name, command, writeOptions } = request;
  // The compiler cannot see that a name and its command belong together.
  const useCase = byName[name] as (
    transaction: TransactionOf<Name>,
    command: CommandOf<Name>,
    context: Context,
  ) => Awaitable<CommandResult<Name>>;
  const run = async (): Promise<CommandResult<Name>> => {
    const result = await useCase(transaction, command, context);
    await recordAudit(transaction, request, result, context);
    return result;
  };
  const { idempotency } = writeOptions;
  if (idempotency === undefined || idempotency === null) return await run();
  return (await runOnce(transaction, idempotency, context, run)) as CommandResult<Name>;
}
