import { z } from 'zod';
import { type ConfigError, formatKey, type KeyPath, suggest } from './errors.ts';

/**
 * Writes an issue of zod as operators read it: what the value must be, after the name of its key. An issue about
 * unknown keys has one line of text for each key.
 */
export function describeIssue(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
    return issue.keys.map((name) => describeUnknown(suggest(formatKey([name]), known))).join('\n');
  }
  if (issue.input === undefined) return 'is missing';
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code !== 'invalid_type') return 'is not valid';
  return typeNames[issue.expected] ?? 'is not valid';
}

const typeNames: Readonly<Partial<Record<string, string>>> = {
  array: 'must be a list',
  boolean: 'must be true or false',
  object: 'must be a mapping of keys to values',
};

function describeUnknown(near: string | undefined): string {
  return near === undefined ? 'unknown key' : `unknown key; did you mean ${near}?`;
}

/** Turns the issues of a schema into errors of the configuration. */
export function collectErrors(
  error: z.ZodError | undefined,
  originOf: (path: KeyPath) => string,
): ConfigError[] {
  return (error?.issues ?? []).flatMap((issue) => {
    const at: KeyPath = issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
    const reported: readonly (readonly [KeyPath, string])[] =
      issue.code === 'unrecognized_keys'
        ? issue.message.split('\n').map((text, index) => [[...at, issue.keys[index] ?? ''], text])
        : [[at, issue.message]];
    return reported.map(([path, text]) => ({ key: formatKey(path), text, origin: originOf(path) }));
  });
}
