import { auditEntry } from './access/audit.ts';
import { isRefusal, storedResult, storeResult } from './access/idempotency.ts';
import type { Context, WriterContext } from './ports.ts';
import type { Awaitable } from './tables.ts';
import * as useCases from './use-cases.ts';
import type { CommandOf, CommandResult, TransactionOf, UseCaseName, WriteRequest } from './writer.ts';

const byName: typeof useCases = useCases;

const processActor = 'latchkey';

/**
 * Runs one use case in a transaction, once per idempotency key, and adds its audit entry. Awaits nothing but the
 * tables.
 */
export async function runUseCase<Name extends UseCaseName>(
  transaction: TransactionOf<Name>,
  request: WriteRequest<Name>,
  writerContext: WriterContext,
): Promise<CommandResult<Name>> {
  const { name, command, writeOptions } = request;
  const context: Context = {
    ...writerContext,
    actor: writeOptions.actor ?? processActor,
    requestId: writeOptions.requestId ?? null,
  };
  // The compiler cannot see that a name and its command belong together.
  const useCase = byName[name] as (
    transaction: TransactionOf<Name>,
    command: CommandOf<Name>,
    context: Context,
  ) => Awaitable<CommandResult<Name>>;
  const { idempotency = null } = writeOptions;
  const stored = idempotency === null ? null : await storedResult(transaction, idempotency);
  // The fingerprints are equal, so the stored result comes from this use case.
  if (stored !== null) return stored as CommandResult<Name>;
  const result = await useCase(transaction, command, context);
  const entry = auditEntry(request, result, context);
  if (entry !== null) await transaction.audit.add(entry);
  if (idempotency === null || isRefusal(result)) return result;
  const refusal = await storeResult(transaction, idempotency, result, context);
  return refusal === null ? result : (refusal as CommandResult<Name>);
}
