import * as fc from 'fast-check';

/** The part of JSON Schema that the OpenAPI description uses. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Schema[];
}

/** Random values that a schema allows. A text is often one of `words`, so that lookups find something. */
export function valuesOf(schema: Schema, words: readonly string[]): fc.Arbitrary<unknown> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((each) => valuesOf(each, words)));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const { type = 'any' } = schema;
  if (typeof type !== 'string')
    return fc.oneof(...type.map((each) => valuesOf({ ...schema, type: each }, words)));
  switch (type) {
    case 'integer':
      return fc.oneof(
        fc.integer({
          min: schema.minimum ?? -2,
          max: Math.min(schema.maximum ?? Infinity, (schema.minimum ?? 0) + 20),
        }),
        fc.maxSafeInteger().filter((number) => number >= (schema.minimum ?? number)),
      );
    case 'number':
      return fc.double({ min: schema.minimum ?? schema.exclusiveMinimum ?? -10, max: schema.maximum ?? 1e9 });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(valuesOf(schema.items ?? {}, words), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case 'object':
      return objectsOf(schema, words);
    case 'string':
      return textsOf(schema, words);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function objectsOf(
  { properties = {}, required = [] }: Schema,
  words: readonly string[],
): fc.Arbitrary<unknown> {
  const members = Object.entries(properties).map(([name, its]) => [name, valuesOf(its, words)] as const);
  const requiredKeys = required.filter((name) => name in properties);
  return fc.record(Object.fromEntries(members), { requiredKeys });
}

function textsOf(
  { format, minLength = 0, maxLength = 64 }: Schema,
  words: readonly string[],
): fc.Arbitrary<string> {
  if (format === 'date-time') {
    return fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') })
      .map((date) => date.toISOString());
  }
  const texts = fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, 64) });
  return fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...words) }, texts);
}
