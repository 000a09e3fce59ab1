/*
 * How Polar’s framework (FastAPI, with Pydantic) reads a body, and what it says about a wrong one.
 */

export type PolarCallName = 'validate' | 'activate' | 'deactivate' | 'read';

/** The members of a body that has no faults. */
export type Sent = {
  key: string;
  organization_id: string;
  activation_id?: string | null;
  benefit_id?: string | null;
  customer_id?: string | null;
  increment_usage?: number | string | null;
  label?: string;
  conditions?: Readonly<Record<string, unknown>>;
  meta?: Readonly<Record<string, unknown>>;
};

/** A fault as Polar’s framework describes it. */
export type Fault = { type: string; loc: (string | number)[]; msg: string; input: unknown };

export function invalid(detail: readonly Fault[]): { status: 422; body: object } {
  return { status: 422, body: { error: 'RequestValidationError', detail } };
}

/** A body that is not JSON. */
const unreadable = Symbol('unreadable');
export const isUnreadable = (body: unknown): boolean => body === unreadable;
export const unreadableFault: Fault = {
  type: 'json_invalid',
  loc: ['body', 0],
  msg: 'JSON decode error',
  input: {},
};

/** As the framework reads a body: one of another type stays a text, which is no object. */
export function bodyOf(text: string, type: string): unknown {
  if (text === '') return null;
  if (!/^application\/(?:[\w.-]+\+)?json\b/i.test(type)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return unreadable;
  }
}

type Check = (value: unknown) => Pick<Fault, 'type' | 'msg'> | null;

const isText: Check = (value) =>
  typeof value === 'string' ? null : { type: 'string_type', msg: 'Input should be a valid string' };

const isUuid: Check = (value) => {
  if (typeof value !== 'string')
    return { type: 'uuid_type', msg: 'UUID input should be a string, bytes or UUID object' };
  const id = uuidOf(value);
  if (id === null) return { type: 'uuid_parsing', msg: 'Input should be a valid UUID, invalid length' };
  return id[14] === '4' ? null : { type: 'uuid_version', msg: 'UUID version 4 expected' };
};

const isCount: Check = (value) => {
  if (typeof value === 'string' && !/^\s*[+-]?\d+\s*$/.test(value))
    return {
      type: 'int_parsing',
      msg: 'Input should be a valid integer, unable to parse string as an integer',
    };
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    return { type: 'int_type', msg: 'Input should be a valid integer' };
  const count = Number(value);
  if (!Number.isInteger(count))
    return {
      type: 'int_from_float',
      msg: 'Input should be a valid integer, got a number with a fractional part',
    };
  return count >= 0
    ? null
    : { type: 'greater_than_equal', msg: 'Input should be greater than or equal to 0' };
};

const isObject: Check = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? null
    : { type: 'dict_type', msg: 'Input should be a valid dictionary' };

/** The members of each call, in the order of its schema; a member that may be left out may be null where Polar says so. */
const members: Readonly<
  Record<
    Exclude<PolarCallName, 'read'>,
    Readonly<Record<string, [Check, 'required' | 'nullable' | 'optional']>>
  >
> = {
  validate: {
    key: [isText, 'required'],
    organization_id: [isUuid, 'required'],
    activation_id: [isUuid, 'nullable'],
    benefit_id: [isUuid, 'nullable'],
    customer_id: [isUuid, 'nullable'],
    increment_usage: [isCount, 'nullable'],
    conditions: [isObject, 'optional'],
  },
  activate: {
    key: [isText, 'required'],
    organization_id: [isUuid, 'required'],
    label: [isText, 'required'],
    conditions: [isObject, 'optional'],
    meta: [isObject, 'optional'],
  },
  deactivate: {
    key: [isText, 'required'],
    organization_id: [isUuid, 'required'],
    activation_id: [isUuid, 'required'],
  },
};

export function faultsOf(name: keyof typeof members, body: unknown): Fault[] {
  if (body === null) return [{ type: 'missing', loc: ['body'], msg: 'Field required', input: null }];
  if (typeof body !== 'object' || Array.isArray(body)) {
    const msg = 'Input should be a valid dictionary or object to extract fields from';
    return [{ type: 'model_attributes_type', loc: ['body'], msg, input: body }];
  }
  return Object.entries(members[name]).flatMap(([member, [check, needed]]) => {
    const loc = ['body', member];
    const value = (body as Record<string, unknown>)[member];
    if (value === undefined)
      return needed === 'required' ? [{ type: 'missing', loc, msg: 'Field required', input: body }] : [];
    if (value === null && needed === 'nullable') return [];
    const fault = check(value);
    return fault === null ? [] : [{ ...fault, loc, input: value }];
  });
}

/** The id in Polar’s own form, which compares ids and not their texts; null: it is none. */
export function uuidOf(text: string): string | null {
  const digits = text.replace(/^urn:uuid:/i, '').replaceAll(/[{}-]/g, '');
  if (!/^[0-9a-f]{32}$/i.test(digits)) return null;
  return digits.toLowerCase().replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export function keyOf(body: unknown): string {
  const { key } = typeof body === 'object' && body !== null ? (body as { key?: unknown }) : {};
  return typeof key === 'string' ? key : '';
}

/** As Polar compares JSON objects: the order of the members does not matter. */
export function isEqual(
  one: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>>,
): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
