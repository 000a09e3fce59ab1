import { resolve } from 'node:path';
import { stringify } from 'yaml';
import { foreignStores } from '../../../config/foreign-stores.ts';
import {
  type DialectName,
  dialectNames,
  type ForeignStoreName,
  foreignStoreNames,
} from '../../../domain/header-names.ts';
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

/** A store with an API of its own. */
export interface PlannedForeignStore {
  readonly foreign: ForeignStoreName;
  /** Null: that of the store. */
  readonly baseUrl: string | null;
  readonly accessToken: PlannedSecret | null;
  /** The keys of the products. */
  readonly products: readonly string[];
}

/** The issuer of a holder, whose configuration has no secret. */
export interface PlannedIssuer {
  readonly issuer: string;
  /** The paths of the public root keys. */
  readonly roots: readonly string[];
  /** The keys of the products. */
  readonly products: readonly string[];
}

export type PlannedRole = PlannedStore | PlannedForeignStore | PlannedIssuer | null;

/** What the options say. Null: an authority, which has no store. `undefined`: the options do not say. */
export type RoleOptions = StoreOptions | PlannedForeignStore | PlannedIssuer | null | undefined;

export function isIssuer(planned: PlannedRole | RoleOptions): planned is PlannedIssuer {
  return planned !== null && planned !== undefined && 'issuer' in planned;
}

export function isForeign(planned: PlannedRole | RoleOptions): planned is PlannedForeignStore {
  return planned !== null && planned !== undefined && 'foreign' in planned;
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
      : `an agent in front of ${isForeign(store) ? foreignStores[store.foreign].title : 'a store'}`;
  return `# Latchkey: ${what}. Written by: latchkey init
# After a change: latchkey config check, then latchkey reload; the log names the settings that need a restart.
# latchkey config show prints every setting in effect. A # directly before a setting marks its default.

# Holds the database and the tokens; only the user that runs Latchkey should have access.
state_dir: ${quote(stateDir)}

listen:
  # Base URL for your software: http://${tcp} (without /api/v2). It can also use the ${isWindows ? 'named pipe' : 'socket'}.
  tcp: ${quote(tcp)}
${socket === null ? defaultSocketLine(isWindows) : `  socket: ${quote(socket)}`}
${formatRole(store)}
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

function formatRole(store: PlannedRole): string {
  if (store === null) return '';
  if (isIssuer(store)) return formatIssuer(store);
  return `${isForeign(store) ? formatForeign(store) : formatStore(store)}${agentDefaults}`;
}

function formatForeign({ foreign, baseUrl, accessToken, products }: PlannedForeignStore): string {
  const { title, productKey, withoutToken } = foreignStores[foreign];
  return `
upstream:
  # Software that was written for ${title} can call this agent.
  store: ${foreign}
  ${baseUrl === null ? `# base_url: ${foreignStores[foreign].baseUrl}` : `base_url: ${quote(baseUrl)}`}
  # Optional: access_token_file, or access_token. Without it, ${withoutToken}.
  ${accessToken === null ? '# access_token_file: ./access-token' : formatSecret('access_token', accessToken)}

# The products whose license keys this agent serves; key is the ${productKey.name} at ${title}.
products:
${products.map((key) => `  - key: ${quote(key)}`).join('\n')}
`;
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
${products.length === 0 ? 'products: []\n' : `products:\n${listed.join('')}`}`;
}

const agentDefaults = `
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
  store: { choices: foreignStoreNames, describe: 'Configure an agent of this store' },
  product: {
    ...textOption('Key of the product whose license keys are served; may be repeated, but not with a secret'),
    array: true,
  },
  'secret-file': textOption('File with the secret of the product; - is standard input', 'file'),
  'api-key-file': textOption('File with the API key of your account at the store, for coupons', 'file'),
  'access-token-file': textOption('File with your access token at --store; - is standard input', 'file'),
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

/** Reads the options about the role and the store. */
export function readRoleOptions(options: InitOptions, target: string): RoleOptions {
  const { upstreamUrl, product, secretFile, apiKeyFile, accessTokenFile, dialect, store } = options;
  const planned = readIssuerOptions(options, target);
  if (planned !== null) return planned;
  const ofSecrets = { 'secret-file': secretFile, 'api-key-file': apiKeyFile, dialect };
  const ofStore = { 'upstream-url': upstreamUrl, product, ...ofSecrets };
  const ofForeign = { store, 'access-token-file': accessTokenFile };
  if (options.authority === true) {
    refuseOptions({ ...ofStore, ...ofForeign }, 'is for an agent: an authority has no upstream');
    return null;
  }
  const readSecret = (file: string | undefined): PlannedSecret | undefined => {
    if (file === undefined) return undefined;
    return file === '-' ? { text: readTextFile(file) } : { file: writePath(resolve(file), target) };
  };
  if (store !== undefined) {
    refuseOptions(ofSecrets, 'cannot be given with --store, which has an API of its own');
    const accessToken = readSecret(accessTokenFile) ?? null;
    return { foreign: store, baseUrl: upstreamUrl ?? null, accessToken, products: product ?? [] };
  }
  refuseOptions({ 'access-token-file': accessTokenFile }, 'is for an agent of a store: add --store');
  if (Object.values(ofStore).every((value) => value === undefined)) return undefined;
  if (product !== undefined && product.length > 1)
    throw new UsageError('--product: give one with its secret, and add the others to the file');
  return {
    baseUrl: upstreamUrl,
    dialect,
    product: product?.[0],
    secret: readSecret(secretFile),
    apiKey: readSecret(apiKeyFile),
  };
}

function refuseOptions(options: Readonly<Record<string, unknown>>, why: string): void {
  const [given] = Object.entries(options).find(([, value]) => value !== undefined) ?? [];
  if (given !== undefined) throw new UsageError(`--${given} ${why}`);
}

/** Null: the options are not about a holder. */
function readIssuerOptions(options: InitOptions, target: string): PlannedIssuer | null {
  const { issuer, root = [], product } = options;
  if (issuer === undefined && root.length === 0) return null;
  const others = {
    authority: options.authority,
    store: options.store,
    'upstream-url': options.upstreamUrl,
    'secret-file': options.secretFile,
    'api-key-file': options.apiKeyFile,
    'access-token-file': options.accessTokenFile,
    dialect: options.dialect,
  };
  refuseOptions(others, 'is not for a holder: it has an issuer, and no secret');
  if (issuer !== undefined && root.length > 0 && product !== undefined) {
    const roots = root.map((file) => writePath(resolve(file), target));
    return { issuer, roots, products: product };
  }
  throw new UsageError('a holder needs --issuer URL --root FILE --product KEY');
}

/** Makes a plan from the options alone. Throws a `UsageError` with the options that are missing. */
export function planFromOptions(storeOptions: RoleOptions): PlannedRole {
  if (storeOptions === null || isIssuer(storeOptions)) return storeOptions;
  if (isForeign(storeOptions)) {
    if (storeOptions.products.length > 0) return storeOptions;
    const { name, where } = foreignStores[storeOptions.foreign].productKey;
    throw new UsageError(`not a terminal; pass the ${name} (${where}): --product KEY`);
  }
  const { baseUrl, dialect = dialectNames[0], apiKey = null, product, secret } = storeOptions ?? {};
  if (baseUrl !== undefined && product !== undefined && secret !== undefined)
    return { baseUrl, dialect, apiKey, products: [{ key: product, secret }] };
  const missing = [
    ...(baseUrl === undefined ? ['--upstream-url URL'] : []),
    ...(product === undefined ? ['--product KEY'] : []),
    ...(secret === undefined ? ['--secret-file FILE'] : []),
  ].join(' ');
  throw new UsageError(
    `not a terminal; pass these options: ${storeOptions === undefined ? `--authority, or ${missing}, or --store NAME --product KEY, or --issuer URL --root FILE --product KEY` : missing}`,
  );
}
