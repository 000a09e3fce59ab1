import { z } from 'zod';
import { formatDatetime } from '../domain/datetime.ts';
import { isHeld, operationStates, type Operation, type OperationState } from '../domain/outbox/operation.ts';
import {
  type Decision,
  waitCauses,
  type OperationWait,
  type Explanation,
} from '../domain/outbox/explanation.ts';
import type { Page } from '../domain/page.ts';
import { oneOf } from './types.ts';
import { soughtLicenseKey } from './license.ts';
import { pageShape } from './page.ts';
import { parameters, type ParameterSet } from './parameters.ts';

/** One operation of the outbox; `license_key` is null for those that are not about one. */
export type OperationObject = {
  id: string;
  kind: string;
  license_key: string | null;
  /** The license key, the coupon code or the order that it is about. */
  subject: string;
  state: OperationState;
  /** Waits for a person's decision. */
  held: boolean;
  attempts: number;
  base_uses: number | null;
  created_at: string;
  /** By which request and under which credential it was asked for; null: before this was kept. */
  request_id: string | null;
  credential: string | null;
  next_at: string | null;
  last_error: string | null;
};

const shape = z.object({
  id: z.string(),
  kind: z.enum(['usage', 'decrease', 'disable', 'enable', 'create_coupon']),
  license_key: z.string().nullable(),
  subject: z.string(),
  state: z.enum(operationStates),
  held: z.boolean(),
  attempts: z.int(),
  base_uses: z.int().nullable(),
  created_at: z.iso.datetime({ offset: true }),
  request_id: z.string().nullable(),
  credential: z.string().nullable(),
  next_at: z.iso.datetime({ offset: true }).nullable(),
  last_error: z.string().nullable(),
});

const operationObject: z.ZodType<OperationObject> = shape.meta({ id: 'Operation' });

/** How an operation stands, for the person who decides about it. */
export type ExplanationObject = {
  meaning: string;
  waits: { cause: OperationWait['cause']; detail: string; until: string | null }[];
  /** The count that the upstream would show if this operation alone was applied to `base_uses`. */
  expected_uses: number | null;
  /** What the upstream last said of the license key. */
  shown: { uses: number; enabled: boolean; at: string } | null;
  /** What each decision would do; null: it cannot be made. */
  decisions: Record<Decision, string | null>;
};

/** An operation with how it stands. */
export type ExplainedOperation = OperationObject & { explanation: ExplanationObject };

const instant = z.iso.datetime({ offset: true });

const wait = z
  .object({ cause: z.enum(waitCauses), detail: z.string(), until: instant.nullable() })
  .meta({ id: 'OperationWait' });

const shownLicense = z
  .object({ uses: z.int(), enabled: z.boolean(), at: instant })
  .meta({ id: 'ShownLicense' });

const effects = z
  .object({ retry: z.string().nullable(), drop: z.string().nullable(), confirm: z.string().nullable() })
  .meta({ id: 'DecisionEffects' });

const explanation = z
  .object({
    meaning: z.string(),
    waits: z.array(wait),
    expected_uses: z.int().nullable(),
    shown: shownLicense.nullable(),
    decisions: effects,
  })
  .meta({ id: 'Explanation' });

export const explainedOperation: z.ZodType<ExplainedOperation> = shape
  .extend({ explanation })
  .meta({ id: 'ExplainedOperation' });

export const operationList: z.ZodType<{ operations: OperationObject[] }> = z
  .object({
    operations: z.array(operationObject),
  })
  .meta({ id: 'OperationList' });

/** `GET /admin/v1/outbox`; without a state: all unfinished ones. Of a license key: unfinished ones alone. */
export const operationQuery: ParameterSet<
  { state?: OperationState | undefined; licenseKey?: string | undefined } & Page
> = parameters({
  state: oneOf(operationStates).optional(),
  license_key: soughtLicenseKey.optional(),
  ...pageShape('operations'),
});

/** `products` says how people know the credential of a product. */
export function serializeOperation(
  operation: Operation,
  products: { credentialName(credential: string): string } | null,
): OperationObject {
  const { progress, nextAt, credential } = operation;
  return {
    id: operation.id,
    kind: operation.kind,
    // Only operations on a license key have a product.
    license_key: operation.productKey === null ? null : operation.subject,
    subject: operation.subject,
    state: progress.state,
    held: isHeld(operation),
    attempts: operation.attempts,
    base_uses: 'baseUses' in progress ? progress.baseUses : null,
    created_at: formatDatetime(operation.createdAt),
    request_id: operation.requestId,
    credential: credential === null ? null : (products?.credentialName(credential) ?? credential),
    next_at: nextAt === null ? null : formatDatetime(nextAt),
    last_error: operation.lastError,
  };
}

/** `now`: epoch ms. */
export function serializeExplanation(
  { meaning, waits, expectedUses, shown, decisions }: Explanation,
  now: number,
): ExplanationObject {
  return {
    meaning,
    waits: waits.map(({ cause, detail, leftMs }) => ({
      cause,
      detail,
      until: leftMs === null ? null : formatDatetime(now + leftMs),
    })),
    expected_uses: expectedUses,
    shown: shown && { ...shown, at: formatDatetime(shown.at) },
    decisions,
  };
}
