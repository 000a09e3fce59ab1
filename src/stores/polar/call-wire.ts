import { z } from 'zod';
import { camelCase } from '../../domain/text.ts';
import type { JsonObject } from '../../upstream/wire.ts';
import { parameters, type ValuesOf } from '../../wire/parameters.ts';

/** What is wrong with one member, in the form of Polar’s framework. */
export type Fault = { type: string; loc: readonly (string | number)[]; msg: string; input: unknown };

/** Why a call is refused. */
export type Faults = { faults: readonly Fault[] };

type Reading<Value> = { value: Value } | Pick<Fault, 'type' | 'msg'>;
type Kind<Value> = (sent: unknown) => Reading<Value>;

const text: Kind<string> = (sent) =>
  typeof sent === 'string' ? { value: sent } : { type: 'string_type', msg: 'Input should be a valid string' };

/** An id in the form in which Polar compares and shows it. */
const id: Kind<string> = (sent) => {
  const digits = typeof sent === 'string' ? sent.toLowerCase().replaceAll('-', '') : '';
  if (!/^[0-9a-f]{32}$/.test(digits)) return { type: 'uuid_parsing', msg: 'Input should be a valid UUID' };
  return { value: digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') };
};

/** Polar counts up to here. */
const maxUses = 2_147_483_647;

const count: Kind<number> = (sent) => {
  const value = typeof sent === 'string' && sent.trim() !== '' ? Number(sent) : sent;
  if (!Number.isInteger(value)) return { type: 'int_type', msg: 'Input should be a valid integer' };
  const whole = value as number;
  if (whole < 0) return { type: 'greater_than_equal', msg: 'Input should be greater than or equal to 0' };
  const msg = `Input should be less than or equal to ${maxUses}`;
  return whole <= maxUses ? { value: whole } : { type: 'less_than_equal', msg };
};

const object: Kind<JsonObject> = (sent) =>
  typeof sent === 'object' && sent !== null && !Array.isArray(sent)
    ? { value: sent as JsonObject }
    : { type: 'dict_type', msg: 'Input should be a valid dictionary' };

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

/** What each call is about. */
export type Named = { key: string; organizationId: string };

export type ValidateCall = Named & {
  activationId: string | null;
  benefitId: string | null;
  customerId: string | null;
  by: number;
  conditions: JsonObject;
};

export type ActivateCall = Named & { label: string; conditions: JsonObject; meta: JsonObject };
export type DeactivateCall = Named & { activationId: string };

/** Reads the members of a call, and notes what is wrong with them. */
class Members {
  readonly faults: Fault[] = [];
  readonly #sent: Readonly<Record<string, unknown>>;

  constructor(values: Sent) {
    this.#sent = values;
  }

  required<Value>(name: string, kind: Kind<Value>): Value | null {
    if (this.#sent[camelCase(name)] === undefined)
      this.faults.push({ type: 'missing', loc: ['body', name], msg: 'Field required', input: null });
    return this.optional(name, kind);
  }

  optional<Value>(name: string, kind: Kind<Value>): Value | null {
    const input = this.#sent[camelCase(name)];
    if (input === undefined) return null;
    const reading = kind(input);
    if ('value' in reading) return reading.value;
    this.faults.push({ type: reading.type, loc: ['body', name], msg: reading.msg, input });
    return null;
  }

  /** The key and the organization, which every call names. */
  named(): Named {
    return {
      key: this.required('key', text) ?? '',
      organizationId: this.required('organization_id', id) ?? '',
    };
  }
}

function readCall<Call>(values: Sent, readMembers: (members: Members) => Call): Call | Faults {
  const members = new Members(values);
  const call = readMembers(members);
  return members.faults.length === 0 ? call : { faults: members.faults };
}

export function readValidate(values: Sent): ValidateCall | Faults {
  return readCall(values, (members) => ({
    ...members.named(),
    activationId: members.optional('activation_id', id),
    benefitId: members.optional('benefit_id', id),
    customerId: members.optional('customer_id', id),
    by: members.optional('increment_usage', count) ?? 0,
    conditions: members.optional('conditions', object) ?? {},
  }));
}

export function readActivate(values: Sent): ActivateCall | Faults {
  return readCall(values, (members) => ({
    ...members.named(),
    label: members.required('label', text) ?? '',
    conditions: members.optional('conditions', object) ?? {},
    meta: members.optional('meta', object) ?? {},
  }));
}

export function readDeactivate(values: Sent): DeactivateCall | Faults {
  return readCall(values, (members) => ({
    ...members.named(),
    activationId: members.required('activation_id', id) ?? '',
  }));
}
