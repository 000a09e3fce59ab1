import { z } from 'zod';
import { formatDatetime } from '../../domain/datetime.ts';
import { operationStates, type Operation, type OperationState } from '../../domain/operation.ts';
import type { Page } from '../../domain/page.ts';
import { oneOf } from './kind.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';

/** One operation of the outbox; `license_key` is null for those that are not about one. */
export type OperationObject = {
  id: string;
  kind: string;
  license_key: string | null;
  state: OperationState;
  /** Waits for a person's decision. */
  held: boolean;
  attempts: number;
  base_uses: number | null;
  created_at: string;
  next_at: string | null;
  last_error: string | null;
};

export const operationObject: z.ZodType<OperationObject> = z
  .object({
    id: z.string(),
    kind: z.enum(['usage', 'decrease', 'disable', 'enable', 'create_coupon', 'redeem', 'void']),
    license_key: z.string().nullable(),
    state: z.enum(operationStates),
    held: z.boolean(),
    attempts: z.int(),
    base_uses: z.int().nullable(),
    created_at: z.iso.datetime({ offset: true }),
    next_at: z.iso.datetime({ offset: true }).nullable(),
    last_error: z.string().nullable(),
  })
  .meta({ id: 'Operation' });

export const operationList: z.ZodType<{ operations: OperationObject[] }> = z
  .object({
    operations: z.array(operationObject),
  })
  .meta({ id: 'OperationList' });

/** `GET /admin/v1/outbox`; without a state: all unfinished ones. */
export const operationQuery: ParameterSet<{ state?: OperationState | undefined } & Page> = parameters({
  state: oneOf(operationStates).optional(),
  ...pageShape,
});

export function presentOperation(operation: Operation): OperationObject {
  const { progress, nextAt } = operation;
  return {
    id: operation.id,
    kind: operation.kind,
    // Only operations on a license key have a product.
    license_key: operation.productKey === null ? null : operation.subject,
    state: progress.state,
    held: progress.state === 'uncertain' && progress.held,
    attempts: operation.attempts,
    base_uses: 'baseUses' in progress ? progress.baseUses : null,
    created_at: formatDatetime(operation.createdAt),
    next_at: nextAt === null ? null : formatDatetime(nextAt),
    last_error: operation.lastError,
  };
}
