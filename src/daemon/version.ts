import { readFileSync } from 'node:fs';

/** The version of this package: the file lies two folders up, from source and from the build alike. */
export const version: string = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;
