import { z } from 'zod';
import type { JsonObject } from '../../upstream/wire.ts';
import { parameters, type ValuesOf } from '../../wire/parameters.ts';

/** What is wrong with one member, in the form of Polar’s framework. */
export type Fault = { type: string; loc: readonly (string | number)[]; msg: string; input: unknown };

type Reading<Value> = { value: Value } | Pick<Fault, 'type' | 'msg'>;
type Kind<Value> = (sent: unknown) => Reading<Value>;

const text: Kind<string> = (sent) =>
  typeof sent === 'string' ? { value: sent } : { type: 'string_type', msg: 'Input should be a valid string' };

const hyphens = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/;

/** An id in the form in which Polar compares and shows it; null: it is none. */
export function idIn(sent: string): string | null {
  const digits = sent.toLowerCase().replaceAll('-', '');
  return /^[0-9a-f]{32}$/.test(digits) ? digits.replace(hyphens, '$1-$2-$3-$4-$5') : null;
}

const id: Kind<string> = (sent) => {
  if (typeof sent !== 'string')
    return { type: 'uuid_type', msg: 'UUID input should be a string, bytes or UUID object' };
  const value = idIn(sent);
  if (value === null) return { type: 'uuid_parsing', msg: 'Input should be a valid UUID' };
  return value[14] === '4' ? { value } : { type: 'uuid_version', msg: 'UUID version 4 expected' };
};

/** Polar counts up to here. */
const maxUses = 2_147_483_647;

const count: Kind<number> = (sent) => {
  const value = typeof sent === 'string' && sent.trim() !== '' ? Number(sent) : sent;
  if (typeof value !== 'number' || Number.isNaN(value))
    return { type: 'int_type', msg: 'Input should be a valid integer' };
  if (!Number.isInteger(value))
    return {
      type: 'int_from_float',
      msg: 'Input should be a valid integer, got a number with a fractional part',
    };
  if (value < 0) return { type: 'greater_than_equal', msg: 'Input should be greater than or equal to 0' };
  return value <= maxUses
    ? { value }
    : { type: 'less_than_equal', msg: `Input should be less than or equal to ${maxUses}` };
};

const object: Kind<JsonObject> = (sent) =>
  typeof sent === 'object' && sent !== null && !Array.isArray(sent)
    ? { value: sent as JsonObject }
    : { type: 'dict_type', msg: 'Input should be a valid dictionary' };

const sent = z.unknown().optional();

/** The members of each call. Nothing is refused here: what is wrong with one is said in Polar’s words. */
export const validateParameters = parameters(
  {
    key: sent,
    organization_id: sent,
    activation_id: sent,
    benefit_id: sent,
    customer_id: sent,
    increment_usage: sent.describe('How many uses to count; a validation without it counts none.'),
    conditions: sent,
  },
  { id: 'PolarValidate' },
);

export const activateParameters = parameters(
  { key: sent, organization_id: sent, label: sent, conditions: sent, meta: sent },
  { id: 'PolarActivate' },
);

export const deactivateParameters = parameters(
  { key: sent, organization_id: sent, activation_id: sent },
  { id: 'PolarDeactivate' },
);

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
  readonly #body: JsonObject;

  constructor(body: JsonObject) {
    this.#body = body;
  }

  required<Value>(name: string, kind: Kind<Value>): Value | null {
    if (this.#body[name] === undefined) {
      this.faults.push({ type: 'missing', loc: ['body', name], msg: 'Field required', input: this.#body });
      return null;
    }
    return this.optional(name, kind);
  }

  optional<Value>(name: string, kind: Kind<Value>): Value | null {
    const input = this.#body[name];
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

function readCall<Call>(body: JsonObject, readMembers: (members: Members) => Call): Call | Fault[] {
  const members = new Members(body);
  const call = readMembers(members);
  return members.faults.length === 0 ? call : members.faults;
}

export function readValidate(values: Partial<ValuesOf<typeof validateParameters>>): ValidateCall | Fault[] {
  const body = {
    key: values.key,
    organization_id: values.organizationId,
    activation_id: values.activationId,
    benefit_id: values.benefitId,
    customer_id: values.customerId,
    increment_usage: values.incrementUsage,
    conditions: values.conditions,
  };
  return readCall(body, (members) => ({
    ...members.named(),
    activationId: members.optional('activation_id', id),
    benefitId: members.optional('benefit_id', id),
    customerId: members.optional('customer_id', id),
    by: members.optional('increment_usage', count) ?? 0,
    conditions: members.optional('conditions', object) ?? {},
  }));
}

export function readActivate(values: Partial<ValuesOf<typeof activateParameters>>): ActivateCall | Fault[] {
  const { key, organizationId: organization_id, label, conditions, meta } = values;
  return readCall({ key, organization_id, label, conditions, meta }, (members) => ({
    ...members.named(),
    label: members.required('label', text) ?? '',
    conditions: members.optional('conditions', object) ?? {},
    meta: members.optional('meta', object) ?? {},
  }));
}

export function readDeactivate(
  values: Partial<ValuesOf<typeof deactivateParameters>>,
): DeactivateCall | Fault[] {
  const { key, organizationId: organization_id, activationId: activation_id } = values;
  return readCall({ key, organization_id, activation_id }, (members) => ({
    ...members.named(),
    activationId: members.required('activation_id', id) ?? '',
  }));
}
