import { z } from 'zod';
import type { ParameterFault } from '../domain/problem/problem.ts';

/** Parameters as sent, by name; empty ones are left out. */
export type RawParameters = ReadonlyMap<string, unknown>;

/** The part of a map that is read. */
export type ParameterSource = { get(name: string): unknown; keys(): Iterable<string> };

export const noParameters: RawParameters = new Map();

/** The values, or the valid values and all errors. */
export type ParsedParameters<Values> =
  { ok: true; values: Values } | { ok: false; values: Partial<Values>; faults: readonly ParameterFault[] };

/** The parameters of a request: `schema` for the documentation, `read` for the request. */
export type ParameterSet<Values> = {
  readonly schema: z.ZodObject;
  /** `within`: a prefix of the names in errors. */
  read(raw: ParameterSource, within?: string): ParsedParameters<Values>;
};

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;

type CamelKeys<Values> = { [Name in keyof Values & string as Camel<Name>]: Values[Name] };

/**
 * Declares the parameters of a request under their names on the wire; inside the program, names are in camelCase.
 * `id` is the name of the schema in the OpenAPI document.
 */
export function parameters<Shape extends Readonly<Record<string, z.ZodType>>>(
  shape: Shape,
  { unknown = 'ignored', id }: { unknown?: 'ignored' | 'refused'; id?: string } = {},
): ParameterSet<CamelKeys<z.output<z.ZodObject<Shape>>>> {
  type Values = CamelKeys<z.output<z.ZodObject<Shape>>>;
  const object = unknown === 'refused' ? z.strictObject(shape) : z.object(shape);
  const fields = Object.entries(shape).map(([name, type]) => ({ name, key: camelCase(name), type }));
  return {
    schema: object.meta(id === undefined ? {} : { id }),
    // Each field on its own: a failed read of the whole object has no values, and the checks of the route need them.
    read(raw, within = '') {
      const values: Record<string, unknown> = {};
      const faults: ParameterFault[] = [];
      for (const { name, key, type } of fields) {
        const input = raw.get(name);
        const result = type.safeParse(input);
        if (result.success) values[key] = result.data;
        else faults.push(parameterFault(`${within}${name}`, input, result.error));
      }
      if (unknown === 'refused') faults.push(...unknownFaults(raw, shape, within));
      // Each value is the output of its type; the compiler cannot follow this through the loop.
      if (faults.length === 0) return { ok: true, values: values as Values };
      return { ok: false, values: values as Partial<Values>, faults };
    },
  };
}

function parameterFault(parameter: string, input: unknown, { issues: [issue] }: z.ZodError): ParameterFault {
  if (input === undefined) return { parameter, code: 'required', detail: `${parameter} is required.` };
  const [, code = 'malformed', sentence = 'is malformed'] = /^(\w+): (.*)$/s.exec(issue?.message ?? '') ?? [];
  return { parameter, code, detail: `${parameter} ${sentence}.` };
}

/** A row of an import may have hundreds of thousands of unknown members. */
const maximumUnknown = 32;

function unknownFaults(raw: ParameterSource, shape: object, within: string): ParameterFault[] {
  const faults: ParameterFault[] = [];
  for (const name of raw.keys()) {
    if (Object.hasOwn(shape, name)) continue;
    // The name comes from the caller and can be long.
    const parameter = `${within}${name.slice(0, 64).toWellFormed()}`;
    faults.push({ parameter, code: 'unknown', detail: 'There is no such parameter.' });
    if (faults.length === maximumUnknown) break;
  }
  return faults;
}

/** All parameters except one. */
export function without(raw: ParameterSource, name: string): ParameterSource {
  const others = [...raw.keys()].filter((each) => each !== name);
  return new Map(others.map((each) => [each, raw.get(each)]));
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
