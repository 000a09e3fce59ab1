import type { IdempotencyTable } from '../../service/access/tables.ts';
import type { LicenseTable } from '../../service/authority/tables.ts';
import type { Idempotency } from '../../service/ports.ts';
import type { AuthorityTransaction, Awaitable, AwaitableTable } from '../../service/tables.ts';
import type { GroupedChanges } from './grouped-changes.ts';
import type { KeptAnswer } from './tables/access/idempotency.ts';
import type { ChangedLicense } from './tables/license-change.ts';

/** What such a use case uses of a transaction. */
type Tables = {
  licenses: Pick<AwaitableTable<LicenseTable>, 'change'>;
  idempotency: Pick<AwaitableTable<IdempotencyTable>, 'get' | 'put' | 'unchangedCount'>;
};

/**
 * Runs a use case that is nothing but one change of a license, under an idempotency key, and commits it together with
 * others. Null: nothing was done, and it is to be run in a transaction of its own, which tells why. Rejects as
 * `GroupedChanges.join` has it fail.
 */
export async function runTogether<Result>(
  group: GroupedChanges,
  idempotency: Idempotency,
  run: (transaction: AuthorityTransaction) => Awaitable<Result>,
): Promise<{ result: Result } | null> {
  const changed = Promise.withResolvers<ChangedLicense | null>();
  let unchangedCount = 0;
  const answer = Promise.withResolvers<KeptAnswer | null>();
  const isDone = Promise.withResolvers<boolean>();
  // Nobody waits for it where the use case itself has failed.
  isDone.promise.catch(() => undefined);
  const tables: Tables = {
    licenses: {
      change(change) {
        group.join({
          change,
          idempotency,
          answer(made, unchangedBefore) {
            unchangedCount = unchangedBefore;
            changed.resolve(made);
            return answer.promise;
          },
          done: () => isDone.resolve(true),
          fail(error) {
            changed.reject(error);
            isDone.reject(error);
          },
          leave() {
            changed.resolve(null);
            isDone.resolve(false);
          },
        });
        return changed.promise;
      },
    },
    idempotency: {
      // What was answered before is found as the change is made.
      get: () => null,
      unchangedCount: () => unchangedCount,
      put: (_credential, _key, { value, unchanged }) =>
        answer.resolve({ ...idempotency, value: JSON.stringify(value), unchanged }),
    },
  };
  let result: Result;
  try {
    result = await run(tables as AuthorityTransaction);
  } finally {
    // One that has kept no answer until now was refused, or has failed: the others need not wait for it.
    answer.resolve(null);
  }
  return (await isDone.promise) ? { result } : null;
}
