import { readFileSync } from 'node:fs';
import { getAsset, isSea } from 'node:sea';

/** The version of this package. Its file lies two folders up, from source and from the build alike. */
export const version: string = (JSON.parse(readPackage()) as { version: string }).version;

function readPackage(): string {
  if (isSea()) return getAsset('package.json', 'utf8');
  return readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
}
