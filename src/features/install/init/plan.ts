import { resolve } from 'node:path';
import { stringify } from 'yaml';
import { type DialectName, dialectNames } from '../../../domain/header-names.ts';
import { type Args, textOption, UsageError } from '../../../cli/command.ts';
import { readTextFile } from '../../../cli/values.ts';
import { writePath } from './paths.ts';

/** A secret in the configuration: the text, or the file that contains it. */
export type PlannedSecret = { readonly text: string } | { readonly file: string };

export interface PlannedStore {
  readonly baseUrl: string;
  readonly dialect: DialectName;
  /** Without an API key, coupons are not served. */
  readonly apiKey: PlannedSecret | null;
  readonly products: readonly { readonly key: string; readonly secret: PlannedSecret }[];
}

/** The issuer of a holder, whose configuration has no secret. */
export interface PlannedIssuer {
  readonly issuer: string;
  /** The paths of the public root keys. */
  readonly roots: readonly string[];
  /** The keys of the products. */
  readonly products: readonly string[];
}

export type PlannedRole = PlannedStore | PlannedIssuer | null;

export function isIssuer(planned: PlannedRole | StoreOptions | undefined): planned is PlannedIssuer {
  return planned !== null && planned !== undefined && 'issuer' in planned;
}

interface Plan {
  readonly stateDir: string;
  readonly tcp: string;
  /** Null: the default of the machine. */
  readonly socket: string | null;
  /** Null: an authority, which is the store itself. */
  readonly store: PlannedRole;
}

/** Writes the configuration, with comments. A `#` without a space starts a setting with its default. */
export function formatPlan(
  { stateDir, tcp, socket, store }: Plan,
  platform: NodeJS.Platform = process.platform,
): string {
  const isWindows = platform === 'win32';
  const what = isIssuer(store)
    ? 'a holder of leases for this device'
    : store === null
      ? 'an authority (the central API itself)'
      : 'an agent in front of a store';
  return `# Latchkey: ${what}. Written by: latchkey init
# After a change: latchkey config check, then latchkey reload; the log names the settings that need a restart.
# latchkey config show prints every setting in effect. A # directly before a setting marks its default.

# Holds the database and the tokens; only the user that runs Latchkey should have access.
state_dir: ${quote(stateDir)}

listen:
  # Base URL for your software: http://${tcp} (without /api/v2). It can also use the ${isWindows ? 'named pipe' : 'socket'}.
  tcp: ${quote(tcp)}
${socket === null ? defaultSocketLine(isWindows) : `  socket: ${quote(socket)}`}
${store === null ? '' : isIssuer(store) ? formatIssuer(store) : formatStore(store)}
# How long the changes of a license key are remembered (latchkey license history).
#history:
#  keep: 90d

#log:
#  level: info
`;
}

function defaultSocketLine(isWindows: boolean): string {
  return isWindows ? String.raw`  # socket: \\.\pipe\latchkey-shop` : '  # socket: ./latchkey.sock';
}

function formatStore({ baseUrl, dialect, apiKey, products }: PlannedStore): string {
  const listed = products.map(
    ({ key, secret }) => `  - key: ${quote(key)}\n    ${formatSecret('secret', secret)}\n`,
  );
  return `
upstream:
  # The store's API; /api/v2/... is appended.
  base_url: ${quote(baseUrl)}
  # How the store answers where the specification leaves it open: specification or payhip.
  dialect: ${dialect}
  # Needed for coupons: api_key, or api_key_file with the path of a file that contains it.
  ${apiKey === null ? '# api_key_file: ./api-key' : formatSecret('api_key', apiKey)}

# The products whose license keys this agent serves, each with secret, or secret_file with a path.
${products.length === 0 ? 'products: []\n' : `products:\n${listed.join('')}`}
# Age of the store's last answer: fresh, then stale, then grace. After that, verifying an enabled key
# gives 503 until the store confirms it again.
#freshness:
#  fresh: 24h
#  stale: 7d
#  grace: 14d

# single promises that this agent alone changes the use counts of its keys; lost answers can then be settled with
# certainty.
#sync:
#  writers: many
`;
}

function formatIssuer({ issuer, roots, products }: PlannedIssuer): string {
  return `
# There is no secret in this file: it can be the same on all machines.
leases:
  issuer: ${quote(issuer)}
  # The public root keys of the vendor.
  roots:
${roots.map((root) => `    - ${quote(root)}`).join('\n')}
  # on_verify takes a seat at the first verify of a license key, explicit only by latchkey activate.
  #activate: on_verify

products:
${products.map((key) => `  - key: ${quote(key)}`).join('\n')}
`;
}

function formatSecret(key: string, secret: PlannedSecret): string {
  return 'text' in secret ? `${key}: ${quote(secret.text)}` : `${key}_file: ${quote(secret.file)}`;
}

function quote(text: string): string {
  return stringify(text, { lineWidth: 0 }).trimEnd();
}

export const initOptions = {
  authority: {
    type: 'boolean',
    describe: 'Configure an authority: the central API itself, with its own store',
  },
  'upstream-url': textOption('Configure an agent in front of the store with this base URL'),
  product: textOption('Key of the product whose license keys the agent serves'),
  'secret-file': textOption('File with the secret of the product; - is standard input', 'file'),
  'api-key-file': textOption('File with the API key of your account at the store, for coupons', 'file'),
  dialect: { choices: dialectNames, describe: 'Dialect of the store; default: detected' },
  issuer: textOption('Configure a holder of leases for this device, with this issuer'),
  root: {
    ...textOption('File with a public root key of the vendor (.pub.jwk); may be repeated', 'file'),
    array: true,
  },
  listen: textOption('TCP address; default: 127.0.0.1:8787, or the next free port'),
  unchecked: { type: 'boolean', describe: 'Write the file even if checks fail' },
  force: { type: 'boolean', describe: 'Replace an existing file' },
  yes: { type: 'boolean', describe: 'Ask nothing' },
} as const;

export type InitOptions = Args<typeof initOptions>;

export interface StoreOptions {
  readonly baseUrl?: string | undefined;
  readonly dialect?: DialectName | undefined;
  readonly apiKey?: PlannedSecret | undefined;
  readonly product?: string | undefined;
  readonly secret?: PlannedSecret | undefined;
}

/** Reads the options about the store. Null: an authority, which has no store. `undefined`: the options do not say. */
export function readStoreOptions(
  options: InitOptions,
  target: string,
): StoreOptions | PlannedIssuer | null | undefined {
  const { upstreamUrl, product, secretFile, apiKeyFile, dialect } = options;
  const planned = readIssuerOptions(options, target);
  if (planned !== null) return planned;
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
    return file === '-' ? { text: readTextFile(file) } : { file: writePath(resolve(file), target) };
  };
  return {
    baseUrl: upstreamUrl,
    dialect,
    product,
    secret: readSecret(secretFile),
    apiKey: readSecret(apiKeyFile),
  };
}

/** Null: the options are not about a holder. */
function readIssuerOptions(options: InitOptions, target: string): PlannedIssuer | null {
  const { issuer, root = [], product } = options;
  if (issuer === undefined && root.length === 0) return null;
  const others = {
    authority: options.authority,
    'upstream-url': options.upstreamUrl,
    'secret-file': options.secretFile,
    'api-key-file': options.apiKeyFile,
    dialect: options.dialect,
  };
  const [other] = Object.entries(others).find(([, value]) => value !== undefined) ?? [];
  if (other !== undefined)
    throw new UsageError(`--${other} is not for a holder: it has an issuer, and no secret`);
  if (issuer !== undefined && root.length > 0 && product !== undefined) {
    const roots = root.map((file) => writePath(resolve(file), target));
    return { issuer, roots, products: [product] };
  }
  throw new UsageError('a holder needs --issuer URL --root FILE --product KEY');
}

/** Makes a plan from the options alone. Throws a `UsageError` with the options that are missing. */
export function planFromOptions(storeOptions: StoreOptions | PlannedIssuer | null | undefined): PlannedRole {
  if (storeOptions === null || isIssuer(storeOptions)) return storeOptions;
  const { baseUrl, dialect = dialectNames[0], apiKey = null, product, secret } = storeOptions ?? {};
  if (baseUrl !== undefined && product !== undefined && secret !== undefined)
    return { baseUrl, dialect, apiKey, products: [{ key: product, secret }] };
  const missing = [
    ...(baseUrl === undefined ? ['--upstream-url URL'] : []),
    ...(product === undefined ? ['--product KEY'] : []),
    ...(secret === undefined ? ['--secret-file FILE'] : []),
  ].join(' ');
  throw new UsageError(
    `not a terminal; pass these options: ${storeOptions === undefined ? `--authority, or ${missing}, or --issuer URL --root FILE --product KEY` : missing}`,
  );
}
