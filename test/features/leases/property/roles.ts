import { defaultFreshnessPolicy, localLicense } from '../../../../src/domain/agent/license-snapshot.ts';
import type { LeaseTerms } from '../../../../src/domain/catalogue.ts';
import type { License } from '../../../../src/domain/license.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import type { AnsweredRequest, LeaseCommand } from '../../../../src/features/leases/service/answer.ts';
import type { Transaction } from '../../../../src/service/tables.ts';
import type { CommandOf, CommandResult, UseCaseName } from '../../../../src/service/writer.ts';
import {
  buildLicense,
  buildSnapshot,
  product,
  type TestStore,
} from '../../../support/builders/store-builders.ts';

export const key = 'KEY-1';
/** So many that no count comes to the floor of 0. */
export const usesBefore = 1_000_000;

export type Write = <Name extends UseCaseName>(
  name: Name,
  command: CommandOf<Name>,
) => Promise<CommandResult<Name>>;

/** What differs between the roles of an issuer. */
export interface IssuerRole {
  /** Removes what an earlier run has left. */
  reset(now: number): void;
  setTerms(terms: LeaseTerms): void;
  /** The license as devices see it. */
  license(): License;
  /** The store says at `now` whether the license is enabled. */
  setEnabled(isEnabled: boolean, now: number): void;
  /** Puts the license back to an earlier state. */
  restore(license: License): void;
  answer(command: LeaseCommand, write: Write): Promise<Result<AnsweredRequest>>;
  /** Leases end at this instant (epoch ms) or earlier. */
  knownUntil(): number;
}

export function authorityRole({ writing: { database, transaction } }: TestStore): IssuerRole {
  const license = (): License => found(transaction.licenses.get(key));
  return {
    reset() {
      database.exec('DELETE FROM activation; DELETE FROM license');
      transaction.licenses.add(buildLicense({ licenseKey: key, uses: usesBefore }));
    },
    setTerms: (leaseTerms) => transaction.products.put({ ...product, leaseTerms }),
    license,
    setEnabled: (enabled) => transaction.licenses.setState({ ...license(), enabled }, false),
    restore: (earlier) => transaction.licenses.setState(earlier, false),
    answer: async (command, write) => await write('answerLeaseRequest', { ...command, accountId: null }),
    knownUntil: () => Infinity,
  };
}

/** An agent that has read the license, and whose upstream is away. */
export function agentRole({ writing: { database, transaction } }: TestStore): IssuerRole {
  let terms: LeaseTerms = product.leaseTerms;
  const snapshot = () => found(transaction.snapshots.get(key));
  return {
    reset(now) {
      database.exec('DELETE FROM activation; DELETE FROM outbox; DELETE FROM license_snapshot');
      putSnapshot(transaction, { isEnabled: true, uses: usesBefore, pending: 0, now });
    },
    setTerms: (changed) => void (terms = changed),
    license: () => localLicense(snapshot()),
    setEnabled(isEnabled, now) {
      const { uses, pending } = snapshot().local;
      putSnapshot(transaction, { isEnabled, uses, pending, now });
    },
    restore() {
      throw new Error('no run restores an agent');
    },
    answer: async (command, write) =>
      await write('answerAgentLeaseRequest', {
        ...command,
        productId: product.productKey,
        terms,
        freshness: defaultFreshnessPolicy,
        maxPending: 100_000,
      }),
    knownUntil: () => snapshot().confirmedAt + defaultFreshnessPolicy.graceMs,
  };
}

function putSnapshot(
  { snapshots }: Transaction,
  { isEnabled, uses, pending, now }: { isEnabled: boolean; uses: number; pending: number; now: number },
): void {
  const license = buildLicense({ licenseKey: key, uses: usesBefore, enabled: isEnabled });
  const local = { uses, enabled: isEnabled, pending };
  snapshots.put(buildSnapshot({ license, local, productId: product.productKey, confirmedAt: now }));
}

function found<Value>(value: Value | null): Value {
  if (value === null) throw new Error('the license is gone');
  return value;
}
