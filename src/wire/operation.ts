import { z } from 'zod';
import { isHeld, operationKinds, operationStates, type Operation } from '../domain/outbox/operation.ts';
import { waitCauses, type Explanation } from '../domain/outbox/explanation.ts';
import { boolean, oneOf, instant, parameters, licenseKeyText, searchText } from './parameters.ts';
import { pageShape } from './page.ts';
import { serializerOf } from './shape.ts';

const shape = z.object({
  id: z.string(),
  kind: z.enum(operationKinds),
  amount: z.int().describe('How many uses a `usage` counts; of any other kind 1.'),
  license_key: z.string().nullable(),
  subject: z
    .string()
    .describe('What the operation changes: a license key, a coupon code, or the redemption of an order.'),
  state: z.enum(operationStates),
  held: z.boolean().describe('Whether the operation waits for the decision of a person.'),
  attempts: z.int(),
  base_uses: z.int().nullable(),
  created_at: instant,
  request_id: z.string().nullable().describe('The request that asked for the operation.'),
  credential: z.string().nullable().describe('The credential of that request.'),
  next_at: instant.nullable(),
  last_error: z.string().nullable(),
});

/** An operation of the outbox; `license_key` is null if the operation is not about a license key. */
export const operationObject = shape.meta({ id: 'Operation' });

export type OperationObject = z.infer<typeof operationObject>;

const wait = z
  .object({ cause: z.enum(waitCauses), detail: z.string(), until: instant.nullable() })
  .meta({ id: 'OperationWait' });

const shownLicense = z
  .object({ uses: z.int(), enabled: z.boolean(), at: instant })
  .meta({ id: 'ShownLicense' });

const effects = z
  .object({ retry: z.string().nullable(), drop: z.string().nullable(), confirm: z.string().nullable() })
  .meta({ id: 'DecisionEffects' });

/** Explains the state of an operation to the person who decides about it. */
const explanation = z
  .object({
    meaning: z.string(),
    waits: z.array(wait),
    expected_uses: z
      .int()
      .nullable()
      .describe('The count that the upstream would show if this operation alone was applied to `base_uses`.'),
    shown: shownLicense.nullable().describe('What the upstream last said about the license key.'),
    decisions: effects.describe('What each decision would do; null if the decision is not possible.'),
  })
  .meta({ id: 'Explanation' });

export type ExplanationObject = z.infer<typeof explanation>;

export const explainedOperation = shape.extend({ explanation }).meta({ id: 'ExplainedOperation' });

export type ExplainedOperation = z.infer<typeof explainedOperation>;

export const operationList = z
  .object({
    operations: z.array(
      shape
        .extend({ explanation: explanation.optional().describe('Only with `explain`.') })
        .meta({ id: 'ListedOperation' }),
    ),
  })
  .meta({ id: 'OperationList' });

/** `GET /admin/v1/outbox`; without a state, or with a license key, only unfinished operations. */
export const operationQuery = parameters({
  state: oneOf(operationStates).optional(),
  license_key: licenseKeyText.optional(),
  search: searchText('license key, coupon code or order', 'e-mail address of the buyer').optional(),
  explain: boolean.prefault(false).describe('Also explain each operation.'),
  ...pageShape('operations'),
});

const writeOperation = serializerOf(operationObject);

/** `products` gives the credential of a product its display name. */
export function serializeOperation(
  operation: Operation,
  products: { credentialName(credential: string): string } | null,
): OperationObject {
  const { progress, credential } = operation;
  return writeOperation({
    ...operation,
    // Only operations on a license key have a product.
    licenseKey: operation.productId === null ? null : operation.subject,
    state: progress.state,
    held: isHeld(operation),
    baseUses: 'baseUses' in progress ? progress.baseUses : null,
    credential: credential && (products?.credentialName(credential) ?? credential),
  });
}

const writeExplanation = serializerOf(explanation);

/** `now`: epoch ms. */
export function serializeExplanation({ waits, ...same }: Explanation, now: number): ExplanationObject {
  const until = (leftMs: number | null): number | null => (leftMs === null ? null : now + leftMs);
  return writeExplanation({ ...same, waits: waits.map((each) => ({ ...each, until: until(each.leftMs) })) });
}
