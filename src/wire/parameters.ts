import { z } from 'zod';
import type { ParameterFault } from '../domain/problem/problem.ts';
import { readerOf, type Issue, type Issues } from './types.ts';

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

type Shape = Readonly<Record<string, z.ZodType>>;

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;

type ValuesOf<S extends Shape> = { [Name in keyof S & string as Camel<Name>]: z.output<S[Name]> };

/**
 * Declares the parameters of a request under their names on the wire; inside the program, names are in camelCase.
 * `id` is the name of the schema in the OpenAPI document.
 */
export function parameters<S extends Shape>(
  shape: S,
  { unknown = 'ignored', id }: { unknown?: 'ignored' | 'refused'; id?: string } = {},
): ParameterSet<ValuesOf<S>> {
  const fields = Object.entries(shape).map(([name, type]) => ({
    name,
    inside: camelCase(name),
    read: readerOf(type),
  }));
  const known = new Set(Object.keys(shape));
  let schema: z.ZodObject | null = null;
  return {
    // Built on first use: only the OpenAPI document needs it.
    get schema() {
      schema ??= (unknown === 'refused' ? z.strictObject(shape) : z.object(shape)).meta(
        id === undefined ? {} : { id },
      );
      return schema;
    },
    read(raw, within = '') {
      const values: Record<string, unknown> = {};
      const faults: ParameterFault[] = [];
      const found: Issues = { issues: [] };
      for (const { name, inside, read } of fields) {
        const value = read(raw.get(name), found);
        if (found.issues.length === 0) values[inside] = value;
        else faults.push(...found.issues.splice(0).map((issue) => parameterFault(`${within}${name}`, issue)));
      }
      if (unknown === 'refused') faults.push(...unknownFaults(raw, known, within));
      // Each value is the output of its schema; the compiler cannot follow this through the loop.
      if (faults.length === 0) return { ok: true, values: values as ValuesOf<S> };
      return { ok: false, values: values as Partial<ValuesOf<S>>, faults };
    },
  };
}

function parameterFault(parameter: string, { code, message, params }: Issue): ParameterFault {
  const own = code === 'custom' ? params?.['code'] : null;
  return {
    parameter,
    code: typeof own === 'string' ? own : 'malformed',
    detail: `${parameter} ${message}.`,
  };
}

/** A row of an import may have hundreds of thousands of unknown members. */
const maximumUnknown = 32;

function unknownFaults(raw: ParameterSource, known: ReadonlySet<string>, within: string): ParameterFault[] {
  const faults: ParameterFault[] = [];
  for (const name of raw.keys()) {
    if (known.has(name)) continue;
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
