import type { ProblemCode } from '../../domain/problem/problem-table.ts';
import { ProblemError } from '../problem-error.ts';
import type { RawParameters } from '../../wire/parameters.ts';

/** How many pairs are allowed, and the code for malformed ones. */
export type PairsLimits = {
  malformed: Extract<ProblemCode, 'malformed_body' | 'malformed_request'>;
  maximum: number;
};

/**
 * Reads `name=value&…` (application/x-www-form-urlencoded), strictly: broken percent-encoding, invalid
 * UTF-8, a repeated name and too many names are refused. An empty value counts as not sent.
 */
export function readPairs(text: string, { malformed, maximum }: PairsLimits): RawParameters {
  const parameters = new Map<string, string>();
  if (text === '') return parameters;
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals), malformed);
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1), malformed);
    if (parameters.has(name)) throw duplicate(name);
    parameters.set(name, value);
    if (parameters.size > maximum) throw tooMany(maximum);
  }
  for (const [name, value] of parameters) if (value === '') parameters.delete(name);
  return parameters;
}

function decode(text: string, malformed: PairsLimits['malformed']): string {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new ProblemError(malformed, 'The percent-encoding of a parameter cannot be read.');
  }
}

/** Refuses a parameter that is sent twice; a long name is cut. */
export function duplicate(name: string): ProblemError {
  return new ProblemError(
    'duplicate_parameter',
    `${name.slice(0, 64).toWellFormed()} is given more than once.`,
  );
}

/** Refuses more parameters than `limits.parameters`. */
export function tooMany(maximum: number): ProblemError {
  return new ProblemError('malformed_request', `There are more than ${maximum} parameters.`);
}
