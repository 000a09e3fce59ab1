import { getSystemErrorMessage } from 'node:util';

/** The path to a value: keys of mappings and positions in lists, starting at the root. */
export type KeyPath = readonly (string | number)[];

/**
 * One error of a configuration.
 *
 * The text never repeats a value, because the value may be a secret in the wrong place.
 */
export interface Fault {
  /** As an operator would write it: `products[0].secret`. */
  readonly key: string;
  readonly text: string;
  /** `/path/config.yaml line 3`, `environment LATCHKEY_…`, `flag` or `default`. */
  readonly origin: string;
}

/** Writes an error as one line. */
export function formatFault(fault: Fault): string {
  return `${fault.key}: ${fault.text} (from ${fault.origin})`;
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
