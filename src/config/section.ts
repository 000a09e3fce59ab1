import { z } from 'zod';
import { type Fault, formatKey, type KeyPath } from './fault/fault.ts';
import { suggest } from './fault/suggestion.ts';
import { isTree, listOf } from './file/tree.ts';
import type { Kind } from './value/kind.ts';

/** A key with one value. What is `null` or absent takes the fallback, written as in the file. */
export function key<T>(kind: Kind<T>, fallback?: unknown): z.ZodType<T> {
  return z.transform((input: unknown, context) => {
    const given = input ?? fallback;
    const value = given === undefined ? undefined : kind.parse(given);
    if (value !== undefined) return value;
    context.addIssue(given === undefined ? 'is missing' : `must be ${kind.expected}`);
    return z.NEVER;
  });
}

/** A mapping of which every key is known. An unknown-keys issue has one line of text for each key. */
export function mapping<S extends z.core.$ZodShape>(shape: S): z.ZodObject<S, z.core.$strict> {
  const names = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return 'must be a mapping of keys to values';
      const keys = issue.keys as readonly string[];
      return keys.map((name) => describeUnknown(suggest(formatKey([name]), names))).join('\n');
    },
  });
}

/** A mapping that may be left out: every key then has its fallback. */
export function section<T>(schema: z.ZodType<T>): z.ZodType<T> {
  return z.preprocess((input) => input ?? {}, schema);
}

/** A mapping that may be left out, which is `null` then. */
export function orAbsent<T>(schema: z.ZodType<T>): z.ZodType<T | null> {
  return z.preprocess((input) => input ?? null, schema.nullable());
}

/** A list of mappings or of values, empty when left out. */
export function list<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.preprocess((input) => listOf(input ?? []) ?? input, z.array(item, 'must be a list'));
}

/** Options of a rule over several keys: its fault is reported at the first key, and only when all of them are valid. */
export function about(
  keys: readonly [string, ...string[]],
  error: string,
): { path: string[]; error: string; when: (payload: z.core.ParsePayload) => boolean } {
  return {
    path: [keys[0]],
    error,
    when: ({ value, issues }) =>
      isTree(value) && !issues.some(({ path }) => keys.includes(String(path?.[0]))),
  };
}

/** Turns the issues of a schema into faults. */
export function collectFaults(error: z.ZodError | undefined, originOf: (path: KeyPath) => string): Fault[] {
  return (error?.issues ?? []).flatMap((issue) => {
    const at: KeyPath = issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
    const reported: readonly (readonly [KeyPath, string])[] =
      issue.code === 'unrecognized_keys'
        ? issue.message.split('\n').map((text, index) => [[...at, issue.keys[index] ?? ''], text])
        : [[at, issue.message]];
    return reported.map(([path, text]) => ({ key: formatKey(path), text, origin: originOf(path) }));
  });
}

function describeUnknown(near: string | undefined): string {
  return near === undefined ? 'unknown key' : `unknown key; did you mean ${near}?`;
}
