import type { Context } from './ports.ts';
import type { AuditEntry, Transaction } from './tables.ts';

/** Puts an act of a person on record, for ever. */
export function audit(transaction: Transaction, entry: Omit<AuditEntry, 'at'>, { now }: Context): void {
  transaction.audit.add({ at: now, ...entry });
}
