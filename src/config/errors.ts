import { getSystemErrorMessage } from 'node:util';

/** The path to a value: keys of mappings and positions in lists, starting at the root. */
export type KeyPath = readonly (string | number)[];

/**
 * One error of a configuration.
 *
 * The text never repeats a value, because the value may be a secret in the wrong place.
 */
export interface ConfigError {
  /** As an operator would write it: `products[0].secret`. */
  readonly key: string;
  readonly text: string;
  /** `/path/config.yaml line 3`, `environment LATCHKEY_…`, `flag` or `default`. */
  readonly origin: string;
}

export function formatConfigError(error: ConfigError): string {
  return `${error.key}: ${error.text} (from ${error.origin})`;
}

/** Writes a path in dotted form; control characters are replaced and long names cut, so that the line stays intact. */
export function formatKey(path: KeyPath): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${formatName(step)}`))
    .join('')
    .replace(/^\./, '');
}

/** Says why a file could not be read, without its path. */
export function formatReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason';
  if ('code' in error && error.code === 'EISDIR') return 'it is a folder';
  if ('errno' in error && typeof error.errno === 'number') return getSystemErrorMessage(error.errno);
  return 'code' in error ? String(error.code) : error.name;
}

function formatName(name: string): string {
  return name.replaceAll(/[\p{C}\p{Z}]/gu, '?').slice(0, 64);
}

/** The environment of this process does not work; the message says what to change. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

/**
 * Suggests the key that was probably meant: at most two letters different, or one level deeper
 * (`LATCHKEY_LOG_LEVEL` has one underscore between the levels instead of two).
 */
export function suggest(mistyped: string, words: readonly string[]): string | undefined {
  const near = words
    .map((word) => ({ word, distance: measureDistance(mistyped, word) }))
    .filter(({ word, distance }) => distance <= Math.min(2, word.length / 2))
    .sort((left, right) => left.distance - right.distance);
  const above = words.find((word) => mistyped.startsWith(`${word}_`));
  return near[0]?.word ?? (above === undefined ? undefined : mistyped.replace(`${above}_`, `${above}.`));
}

/** Counts the insertions, deletions and replacements between two words (Levenshtein). */
function measureDistance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > 2) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of Array.from(from).entries()) {
    const next = [index + 1];
    for (const [column, other] of Array.from(to).entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
