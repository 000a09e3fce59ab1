import * as useCases from './use-cases.ts';
import { isFailure, done, notFound, type Result } from '../domain/problem/problem.ts';
import { storedResult, storeResult } from './idempotency.ts';
import type { Context, WriterContext, Keyed } from './ports.ts';
import type { Awaitable, AuthorityTransaction, Transaction } from './tables.ts';
import type {
  CommandOf,
  CommandResult,
  TransactionOf,
  UseCaseName,
  UseCases,
  WriteRequest,
} from './writer.ts';
import { storeEvents } from './events.ts';
import { asAnswered } from '../domain/terms.ts';
import { features } from '../features.ts';
import type { Locks } from './locks.ts';
import { type FeatureUseCases, audited, auditEntry } from './audit.ts';
import type { ChangedLicense } from '../domain/license.ts';
import { isOvertaken, type VoidedRedemption } from './checkout.ts';
import type { QueuedChange } from './outbox/license-change.ts';

declare module '../feature.ts' {
  interface Feature {
    /** Its use cases that write, and what each locks on a database that several processes write to. */
    readonly useCases?: {
      readonly load: () => Promise<FeatureUseCases>;
      readonly locks: { readonly [Name in UseCaseName]?: (command: CommandOf<Name>) => Locks };
      /** Those that run on a local store only, and lock nothing. */
      readonly local?: readonly UseCaseName[];
      /** Maintenance that one node does for all nodes: the result for those that try at the same time. */
      readonly byOneNode?: { readonly [Name in UseCaseName]?: CommandResult<Name> };
      /** Those that run even if the disk is full. */
      readonly essential?: readonly UseCaseName[];
    };
  }
}

/** The use cases of features are added when the first of them runs. */
const byName: Partial<UseCases> = { ...useCases };

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
  // No wait in the way of every write.
  if (byName[name] === undefined) await loadUseCases([name]);
  // The compiler cannot see that a name and its command belong together.
  const useCase = byName[name] as (
    transaction: TransactionOf<Name>,
    command: CommandOf<Name>,
    context: Context,
  ) => Awaitable<CommandResult<Name>>;
  const { idempotency = null } = writeOptions;
  const stored = idempotency === null ? null : await storedResult(transaction, idempotency, context);
  // The fingerprints are equal, so the stored result comes from this use case.
  if (typeof stored === 'number') {
    const again = await answerAgain(
      transaction,
      name,
      { ...(command as { licenseKey: string }), stored },
      context,
    );
    return again as CommandResult<Name>;
  }
  const asked = { command, keyed: idempotency?.keyed };
  if (stored !== null && !(await isToRepeat(transaction, name, asked, stored)))
    return stored as CommandResult<Name>;
  // A use case that was refused may have left events.
  transaction.events.take();
  const result = await useCase(transaction, command, context);
  const entry = auditEntry(request, result, context);
  if (entry !== null) await transaction.audit.add(entry);
  if (!isFailure(result)) await storeEvents(transaction, context);
  if (idempotency === null || isFailure(result)) return result;
  const short = idempotency.keyed === undefined ? null : shortAnswer(name, result);
  const refusal = await storeResult(transaction, idempotency, { result, short }, context);
  return refusal === null ? result : (refusal as CommandResult<Name>);
}

/**
 * Loads the features that have these use cases, unless they are loaded. A writer calls this before a transaction, in which
 * nothing else may run.
 */
export async function loadUseCases(names: readonly UseCaseName[]): Promise<void> {
  for (const name of names) {
    if (byName[name] !== undefined) continue;
    const feature = features.find(
      ({ useCases: own }) => own !== undefined && (name in own.locks || own.local?.includes(name) === true),
    );
    const loaded = await feature?.useCases?.load();
    Object.assign(byName, loaded?.useCases);
    Object.assign(audited, loaded?.audited);
  }
}

/*
 * What is stored of the answer to an agent that delivers a change of a license: the revision that the change has made, or 0.
 * A repeated request is answered with the license as it is then. An agent may have millions of stored answers.
 */

/** Null: the whole result is stored. */
function shortAnswer(name: UseCaseName, result: Result<unknown>): number | null {
  if (!result.ok || (name !== 'changeLicense' && name !== 'queueChange')) return null;
  const { appliedRevision = 0 } = result.value as ChangedLicense | QueuedChange;
  return appliedRevision;
}

/** Makes the answer again. `stored`: of `shortAnswer`. */
async function answerAgain(
  transaction: AuthorityTransaction,
  name: UseCaseName,
  { licenseKey, stored }: { licenseKey: string; stored: number },
  { now }: Pick<Context, 'now'>,
): Promise<Result<unknown>> {
  const applied = stored === 0 ? {} : { appliedRevision: stored };
  if (name === 'queueChange') {
    // The writer of an agent has all tables.
    const snapshot = (transaction as Transaction).snapshots.get(licenseKey);
    return snapshot === null ? notFound('license') : done({ snapshot, operationId: null, ...applied });
  }
  const license = await transaction.licenses.get(licenseKey);
  return license === null ? notFound('license') : done({ ...asAnswered(license, now), ...applied });
}

/** Whether a change is carried out again, although its answer is stored. */
async function isToRepeat(
  transaction: AuthorityTransaction,
  name: UseCaseName,
  { command, keyed }: { command: unknown; keyed: Keyed | undefined },
  stored: unknown,
): Promise<boolean> {
  if (name !== 'voidRedemption' || keyed === undefined) return false;
  const result = stored as Result<VoidedRedemption>;
  if (!result.ok) return false;
  const asked = { ...(command as { accountId: string; order: string }), createdAt: keyed.createdAt };
  return await isOvertaken(transaction, asked, result.value);
}
