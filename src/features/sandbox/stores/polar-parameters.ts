/*
 * How Polar’s framework (FastAPI, with Pydantic) reads a body, and what it says about a wrong one.
 */

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

/** The member that holds what is wrong with a body as a whole. */
const wholeBody = '';

/** The members of a body; one of another type is a text for the framework, which has no members. */
export function readBody(text: string, type: string): Record<string, unknown> {
  const wrong = (fault: Omit<Fault, 'loc'>): Record<string, unknown> => ({
    [wholeBody]: { loc: ['body'], ...fault },
  });
  if (text === '') return wrong({ type: 'missing', msg: 'Field required', input: null });
  const read = /^application\/(?:[\w.-]+\+)?json\b/i.test(type) ? parse(text) : text;
  if (read === undefined) return wrong({ type: 'json_invalid', msg: 'JSON decode error', input: {} });
  if (typeof read === 'object' && read !== null && !Array.isArray(read))
    return read as Record<string, unknown>;
  const msg = 'Input should be a valid dictionary or object to extract fields from';
  return wrong({ type: 'model_attributes_type', msg, input: read });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
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
    'validate' | 'activate' | 'deactivate',
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

export function faultsOf(name: keyof typeof members, body: Readonly<Record<string, unknown>>): Fault[] {
  if (wholeBody in body) return [body[wholeBody] as Fault];
  return Object.entries(members[name]).flatMap(([member, [check, needed]]) => {
    const loc = ['body', member];
    const value = body[member];
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

/** As Polar compares JSON objects: the order of the members does not matter. */
export function isEqual(
  one: Readonly<Record<string, unknown>>,
  other: Readonly<Record<string, unknown>>,
): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
