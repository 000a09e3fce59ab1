import { countAfter } from '../license.ts';
import type { Operation } from './operation.ts';

/** By how much an operation changes the count of its license. */
export function effectOnUses({ kind, amount }: Pick<Operation, 'kind' | 'amount'>): number {
  if (kind === 'usage') return amount;
  return kind === 'decrease' ? -1 : 0;
}

/** The count of a license after an operation. A decrease stops at 0. */
export function usesAfter(uses: number, operation: Pick<Operation, 'kind' | 'amount'>): number {
  return operation.kind === 'decrease' ? countAfter(uses, 'decrease') : uses + effectOnUses(operation);
}
