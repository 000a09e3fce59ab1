import { z } from 'zod';
import { parameters, type ValuesOf } from '../../wire/parameters.ts';

/** What is wrong with one member, in the form of Polar’s framework. */
export type Fault = { type: string; loc: readonly (string | number)[]; msg: string; input: unknown };

/** Why a call is refused. */
export type Faults = { faults: readonly Fault[] };

/** What Polar says about a member of another kind: the type of the fault, and a sentence. */
const otherwise = (type: string, sentence: string) => ({
  error: ({ input }: { input: unknown }) =>
    input === undefined ? 'missing Field required' : `${type} ${sentence}`,
});

const text = z.string(otherwise('string_type', 'Input should be a valid string'));
const noId = otherwise('uuid_parsing', 'Input should be a valid UUID');
/** An id in the form in which Polar compares and shows it. */
const id = z
  .string(noId)
  .transform((sent) => sent.toLowerCase().replaceAll('-', ''))
  .pipe(z.string().regex(/^[0-9a-f]{32}$/, noId))
  .transform((digits) => digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'));

/** Polar counts up to here. */
export const maxUses = 2_147_483_647;

const count = z.preprocess(
  (sent) => (typeof sent === 'string' && sent.trim() !== '' ? Number(sent) : sent),
  z
    .int(otherwise('int_type', 'Input should be a valid integer'))
    .min(0, 'greater_than_equal Input should be greater than or equal to 0')
    .max(maxUses, `less_than_equal Input should be less than or equal to ${maxUses}`)
    .nullable()
    .default(null),
);

const object = z
  .record(z.string(), z.unknown(), otherwise('dict_type', 'Input should be a valid dictionary'))
  .nullable()
  .default(null)
  .transform((sent) => sent ?? {});

const sent = z.unknown().optional();

/** The members of all calls. Nothing is refused here: what is wrong with one is said in Polar’s words. */
export const callParameters = parameters(
  {
    key: sent,
    organization_id: sent,
    activation_id: sent.describe('Of a validation, and of what deactivates.'),
    benefit_id: sent.describe('Of a validation.'),
    customer_id: sent.describe('Of a validation.'),
    increment_usage: sent.describe('How many uses a validation counts; without it, none.'),
    conditions: sent.describe('Of a validation and of an activation.'),
    label: sent.describe('Of an activation.'),
    meta: sent.describe('Of an activation.'),
  },
  { id: 'PolarCall' },
);

type Sent = Partial<ValuesOf<typeof callParameters>>;

const named = z.object({ key: text, organizationId: id });
const maybe = id.nullable().default(null);
const validation = named.extend({
  activationId: maybe,
  benefitId: maybe,
  customerId: maybe,
  incrementUsage: count,
  conditions: object,
});
const activation = named.extend({ label: text, conditions: object, meta: object });
const deactivation = named.extend({ activationId: id });

/** The key and the organization, which every call names. */
export type Named = z.infer<typeof named>;
export type ValidateCall = z.infer<typeof validation>;
export type ActivateCall = z.infer<typeof activation>;
export type DeactivateCall = z.infer<typeof deactivation>;

function readCall<Call>(shape: z.ZodType<Call>, values: Sent): Call | Faults {
  const { data, error } = shape.safeParse(values, { reportInput: true });
  if (error === undefined) return data;
  const faults = error.issues.map(({ path: [name], message, input = null }) => {
    const [type = '', ...words] = message.split(' ');
    const member = String(name).replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return { type, loc: ['body', member], msg: words.join(' '), input };
  });
  return { faults };
}

export const readValidate = (values: Sent): ValidateCall | Faults => readCall(validation, values);
export const readActivate = (values: Sent): ActivateCall | Faults => readCall(activation, values);
export const readDeactivate = (values: Sent): DeactivateCall | Faults => readCall(deactivation, values);
