import { statSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { engineIn } from './engine.ts';
import { collectErrors, describeIssue } from './section.ts';
import { type Configuration, roleOf, settings, signingDirectoryOf } from './configuration.ts';
import type { Hint } from '../domain/finding.ts';
import { type Raw, readSources, type Sources, type NamedBy, type ValueSource } from './source.ts';
import { type ConfigError, formatKey, type KeyPath, formatConfigError } from './errors.ts';
import { readCertificates, readTlsFiles, type TlsSettings } from './file/certificates.ts';
import { type Environment, homeDirectory } from './defaults.ts';
import {
  checkLocalFile,
  checkWindowsFile,
  type LocalFile,
  localFileName,
} from './file/configuration-file.ts';
import { checkRights } from './file/windows-rights.ts';
import { readNamedFile } from './file/named-file.ts';
import { readSecretFiles } from './file/secret-file.ts';
import { type Tree, isTree, valueAt } from './file/tree.ts';
import { containsSecret, warnOfPlainHttp, warnOfReadableFiles, warnOfShortSecrets } from './warnings.ts';
import type { Address } from './value/address.ts';
import { featureSections } from './feature-sections.ts';
import { checkSockets, endpoints } from './settings/listen.ts';
import * as types from './setting-types.ts';

/** The options of the command line; everything else comes from this process. */
export interface LoadOptions {
  readonly file?: string | undefined;
  /** The text of that file, if the file is not written yet. */
  readonly text?: string | undefined;
  /** Further flags, in the names and form of the file: `{ listen: { tcp: '127.0.0.1:0' } }`. */
  readonly flags?: Tree | undefined;
  /** Default: the environment of this process. */
  readonly environment?: Environment | undefined;
  /** Called if a file at a default path is skipped as untrusted, with the reason. */
  readonly onSkippedFile?: ((path: string, reason: string) => void) | undefined;
  /** Called on Windows if a file is used without knowing who can write to it, with the reason. */
  readonly onUncheckedFile?: ((path: string, reason: string) => void) | undefined;
}

export interface LoadedConfiguration {
  readonly ok: true;
  readonly configuration: Configuration;
  readonly file: string | null;
  readonly searchedPaths: readonly string[];
  /** The files that contain secrets, including the private key of TLS. */
  readonly secretFiles: readonly string[];
  readonly fileWithSecrets: string | null;
  /** Valid settings that could disclose secrets, in the form of errors. */
  readonly warnings: readonly ConfigError[];
  /** Says where the value of a setting comes from. */
  readonly sourceOf: (path: KeyPath) => ValueSource;
}

/** Where a configuration comes from. */
export type ConfigurationSource = Pick<
  LoadedConfiguration,
  'file' | 'secretFiles' | 'fileWithSecrets' | 'sourceOf'
>;

export type ConfigurationResult =
  LoadedConfiguration | { readonly ok: false; readonly errors: readonly ConfigError[] };

/** Loads the configuration of this process: at the start, on SIGHUP and for `config check`. */
export function loadConfiguration(options: LoadOptions = {}): ConfigurationResult {
  return parseConfiguration(processSources(options));
}

/** The configuration file in the working directory; null if there is none, or another file takes precedence. */
export function findLocalFile(options: LoadOptions = {}): string | null {
  const sources = processSources(options);
  const { path } = readSources(sources).file;
  return path === join(sources.directory, localFileName) ? path : null;
}

/** Finds the daemon that the commands of this user talk to; the user need not be able to read the secrets. */
export function locateDaemon(options: LoadOptions = {}): LocationResult {
  return parseLocation(processSources(options));
}

/**
 * Parses a configuration from its sources (src/config/README.md, Where a value comes from).
 *
 * All errors are reported together, except that a text that is not YAML is reported alone.
 */
export function parseConfiguration(sources: Sources): ConfigurationResult {
  const raw = readSources(sources);
  if (raw.errors.length > 0) return { ok: false, errors: raw.errors };
  const secrets = readSecretFiles(raw, sources.readFile);
  // Compiling the schema pays off only for many values.
  const parsed = settings.safeParse(secrets.tree, { jitless: true, error: describeIssue });
  // The compiler does not see the sections of features.
  const sections = parsed.data as Omit<Configuration, 'role'> | undefined;
  const unread = new Set(secrets.errors.map(({ key }) => key));
  const allErrors = [
    // Nothing is known about a secret whose file could not be read.
    ...collectErrors(parsed.error, raw.originOf).filter(({ key }) => !unread.has(`${key}_file`)),
    ...secrets.errors,
    ...checkProductSecrets(secrets.tree, raw),
    ...checkCaFile(sections, raw, sources),
    ...checkSectionsOfFeatures(sections, raw, sources),
    ...checkTlsFiles(parsed.data?.listen.tls ?? null, raw, sources),
    ...checkSocketsHere(sections, raw, sources),
  ];
  if (sections === undefined || allErrors.length > 0) return { ok: false, errors: allErrors };
  const configuration: Configuration = { role: roleOf(sections), ...sections };
  const fileWithSecrets = containsSecret(raw.file.tree) ? raw.file.path : null;
  const { tls } = sections.listen;
  const keyFile = tls === null ? [] : [{ key: ['listen', 'tls', 'key_file'], path: tls.keyFile }];
  const ofFeatures = featureSections.flatMap((section) => section.secretFiles?.(sections) ?? []);
  const secretFiles = [...secrets.files, ...keyFile, ...ofFeatures];
  return {
    ok: true,
    configuration,
    file: raw.file.path,
    searchedPaths: raw.file.searchedPaths,
    sourceOf: raw.sourceOf,
    secretFiles: secretFiles.map(({ path }) => path),
    fileWithSecrets,
    warnings: [
      ...warnOfPlainHttp(configuration, raw),
      ...warnOfShortSecrets(configuration, raw),
      ...warnOfReadableFiles({ fileWithSecrets, secretFiles }, raw, sources),
    ],
  };
}

/** An agent needs the secret of each product, unless its store has none. A holder must not have one. */
function checkProductSecrets(tree: Tree, { originOf }: Raw): ConfigError[] {
  const isAgent = isTree(tree['upstream']);
  const hasSecrets = isAgent && (valueAt(tree, ['upstream', 'store']) ?? null) === null;
  const isHolder = valueAt(tree, ['leases', 'issuer']) !== undefined;
  const { products } = tree;
  if (!Array.isArray(products) || isAgent === isHolder) return [];
  return products.flatMap((product: unknown, index): ConfigError[] => {
    if (!isTree(product) || 'secret' in product === hasSecrets) return [];
    const at = ['products', index, 'secret'];
    if (isAgent && !hasSecrets)
      return [{ key: formatKey(at), text: 'must not be given: this store has none', origin: originOf(at) }];
    const text = isAgent
      ? 'is missing'
      : 'must not be given: a holder has no secret of the vendor, so that the owner of the machine can read none';
    return [{ key: formatKey(at), text, origin: originOf(at) }];
  });
}

/** Reports unusable certificates now; they are used when connections are opened. */
function checkCaFile(
  configuration: Omit<Configuration, 'role'> | undefined,
  raw: Raw,
  { readFile }: Sources,
): ConfigError[] {
  const { caFile = null } = configuration?.upstream ?? {};
  const read = caFile === null ? null : readCertificates(caFile, readFile);
  if (read === null || read.ok) return [];
  const at = ['upstream', 'ca_file'];
  return [{ key: formatKey(at), text: read.text, origin: raw.originOf(at) }];
}

/** Reports unusable files that sections of features name. */
function checkSectionsOfFeatures(
  configuration: Omit<Configuration, 'role'> | undefined,
  raw: Raw,
  { readFile }: Sources,
): ConfigError[] {
  if (configuration === undefined) return [];
  const faults = featureSections.flatMap(({ check }) => check?.(configuration, readFile) ?? []);
  return faults.map(({ at, text }) => ({ key: formatKey(at), text, origin: raw.originOf(at) }));
}

/** Reports unusable files of TLS now; the server reads them again when it listens. */
function checkTlsFiles(tls: TlsSettings | null, raw: Raw, { readFile }: Sources): ConfigError[] {
  const read = tls === null ? null : readTlsFiles(tls, readFile);
  if (read === null || read.ok) return [];
  const at = ['listen', 'tls', read.key];
  return [{ key: formatKey(at), text: read.text, origin: raw.originOf(at) }];
}

function checkSocketsHere(
  configuration: Omit<Configuration, 'role'> | undefined,
  { originOf }: Raw,
  { platform }: Sources,
): ConfigError[] {
  if (configuration === undefined) return [];
  return checkSockets(configuration.listen, platform).map(({ key, text }) => {
    const at = ['listen', ...key];
    return { key: formatKey(at), text, origin: originOf(at) };
  });
}

function processSources(options: LoadOptions): Sources {
  const { file, text, flags, environment, onSkippedFile } = options;
  const unwritten = new Map(file === undefined || text === undefined ? [] : [[resolve(file), text]]);
  return {
    file,
    flags,
    environment: environment ?? process.env,
    home: homeDirectory() ?? '/',
    platform: process.platform,
    directory: process.cwd(),
    isTerminal: process.stdout.isTTY,
    readFile: (path) => unwritten.get(path) ?? readNamedFile(path),
    checkLocalFile: (path) => {
      const checked = checkHere(path, options);
      if (typeof checked === 'object') onSkippedFile?.(path, checked.unsafe);
      return checked;
    },
    isReadableByOthers,
  };
}

function checkHere(path: string, { onUncheckedFile }: LoadOptions): LocalFile {
  const user = process.getuid?.();
  if (user !== undefined) return checkLocalFile(path, user);
  return checkWindowsFile(path, (reason) => onUncheckedFile?.(path, reason));
}

/** False also if Windows does not say so: the doctor reports that. */
function isReadableByOthers(path: string): boolean {
  if (process.platform !== 'win32')
    return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o004) !== 0;
  const rights = checkRights(path);
  return rights.kind === 'checked' && rights.files.some(({ readers }) => readers.length > 0);
}

/** Where to find a running daemon. */
export interface Location {
  readonly stateDir: string;
  readonly socket: string | null;
  readonly tcp: readonly Address[];
  /** What has the records instead of the state directory: members of its engine. */
  readonly engine: {
    readonly place: string;
    readonly restoring: (file: string, hint: Hint) => string;
  } | null;
  readonly hasUpstream: boolean;
  readonly hasIssuer: boolean;
  /** Where an issuer has its signing keys. */
  readonly signingDir: string;
  readonly namedBy: NamedBy;
  readonly file: string | null;
  readonly searchedPaths: readonly string[];
}

export type LocationResult =
  | { readonly ok: true; readonly location: Location }
  | { readonly ok: false; readonly errors: readonly ConfigError[] };

const schema = z.object({
  state_dir: types.path,
  listen: z.object(endpoints),
  leases: z.object({ signing_dir: types.optional(types.path) }).prefault({}),
});

/**
 * Reads only where the daemon listens: secrets are not needed, and other settings may have errors.
 *
 * If a flag names the state directory, the file need not be readable: `listen.json` in that directory has the
 * addresses.
 */
export function parseLocation(sources: Sources): LocationResult {
  const raw = readSources(sources);
  const { errors } = raw;
  if (errors.length > 0 && sources.flags?.['state_dir'] === undefined) return { ok: false, errors };
  const parsed = schema.safeParse(raw.tree, { error: describeIssue });
  if (!parsed.success) return { ok: false, errors: collectErrors(parsed.error, raw.originOf) };
  const { stateNamedBy: namedBy } = raw;
  const { path: file, searchedPaths } = raw.file;
  const { state_dir: stateDir, listen: listeners, leases } = parsed.data;
  const hasUpstream = isTree(valueAt(raw.tree, ['upstream']));
  const hasIssuer = typeof valueAt(raw.tree, ['leases', 'issuer']) === 'string';
  return {
    ok: true,
    location: {
      stateDir,
      ...listeners,
      engine: engineIn(raw.tree),
      hasUpstream,
      hasIssuer,
      signingDir: signingDirectoryOf({ stateDir, leases: { signingDir: leases.signing_dir } }),
      namedBy,
      file,
      searchedPaths,
    },
  };
}

/**
 * The configuration of a daemon within another program, from `tree` and the files that it names. The sandbox and tests use it.
 * Throws where it is wrong.
 */
export function embeddedConfiguration(tree: Tree, files: readonly string[] = []): Configuration {
  const result = parseConfiguration({
    flags: tree,
    environment: {},
    home: tmpdir(),
    platform: process.platform,
    directory: tmpdir(),
    readFile: (path) => {
      if (files.includes(path)) return readFileSync(path, 'utf8');
      throw Object.assign(new Error(`no such file: ${path}`), { code: 'ENOENT' });
    },
  });
  if (result.ok) return result.configuration;
  throw new Error(result.errors.map(formatConfigError).join('\n'));
}
