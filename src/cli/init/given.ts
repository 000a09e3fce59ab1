import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type DialectName, dialectNames } from '../../domain/dialect.ts';
import { type GlobalOptions, UsageError } from '../command.ts';
import { writePath } from './paths.ts';
import type { PlannedSecret, PlannedStore } from './plan.ts';

/** The options of `init`. */
export interface InitOptions extends GlobalOptions {
  readonly authority?: boolean | undefined;
  readonly upstreamUrl?: string | undefined;
  readonly product?: string | undefined;
  readonly secretFile?: string | undefined;
  readonly apiKeyFile?: string | undefined;
  readonly dialect?: DialectName | undefined;
  readonly listen?: string | undefined;
  readonly unchecked?: boolean | undefined;
  readonly force?: boolean | undefined;
  readonly yes?: boolean | undefined;
}

/** What the options define about the store. */
export interface GivenStore {
  readonly baseUrl?: string | undefined;
  readonly dialect?: DialectName | undefined;
  readonly apiKey?: PlannedSecret | undefined;
  readonly product?: string | undefined;
  readonly secret?: PlannedSecret | undefined;
}

/** Reads the options about the store. Null: an authority, which has no store. `undefined`: the options do not say. */
export function readGiven(options: InitOptions, target: string): GivenStore | null | undefined {
  const { upstreamUrl, product, secretFile, apiKeyFile, dialect } = options;
  const ofStore = {
    'upstream-url': upstreamUrl,
    product,
    'secret-file': secretFile,
    'api-key-file': apiKeyFile,
    dialect,
  };
  const [named] = Object.entries(ofStore).find(([, value]) => value !== undefined) ?? [];
  if (options.authority === true && named !== undefined)
    throw new UsageError(`--${named} is for an agent: an authority has no upstream`);
  if (options.authority === true) return null;
  if (named === undefined) return undefined;
  const readSecret = (file: string | undefined): PlannedSecret | undefined => {
    if (file === undefined) return undefined;
    return file === '-'
      ? { text: readFileSync(0, 'utf8').trim() }
      : { file: writePath(resolve(file), target) };
  };
  return {
    baseUrl: upstreamUrl,
    dialect,
    product,
    secret: readSecret(secretFile),
    apiKey: readSecret(apiKeyFile),
  };
}

/** Makes a plan from the options alone. Throws a `UsageError` with the options that are missing. */
export function planGiven(given: GivenStore | null | undefined): PlannedStore | null {
  if (given === null) return null;
  const { baseUrl, dialect = dialectNames[0], apiKey = null, product, secret } = given ?? {};
  if (baseUrl !== undefined && product !== undefined && secret !== undefined)
    return { baseUrl, dialect, apiKey, products: [{ key: product, secret }] };
  const missing = [
    ...(baseUrl === undefined ? ['--upstream-url URL'] : []),
    ...(product === undefined ? ['--product KEY'] : []),
    ...(secret === undefined ? ['--secret-file FILE'] : []),
  ].join(' ');
  throw new UsageError(
    `not a terminal; pass these options: ${given === undefined ? `--authority, or ${missing}` : missing}`,
  );
}
