import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { formatReason } from '../../config/errors.ts';
import type { Tree } from '../../config/file/tree.ts';
import { maxLicenseKeyLength } from '../../domain/license.ts';
import { minSecretLength } from '../../service/access/credential.ts';
import { makeDirectory, readOwnFile, replaceFile } from '../../store/sqlite/files/private-file.ts';
import { makeTemporaryDirectory } from '../../daemon/system/temporary-directory.ts';
import { agentConfiguration } from './agent.ts';
import type { SandboxStore } from './store.ts';
import { parseJson } from '../../domain/text.ts';

/** A file of the sandbox cannot be used. The message repeats no secret. */
export class SandboxError extends Error {}

const secret = z.string().min(minSecretLength).max(200);

const credentialMembers = {
  api_key: secret,
  product_key: z.string().min(1).max(100),
  product_secret: secret,
  license_key: z.string().min(1).max(maxLicenseKeyLength),
};

const fileCredentials = z.strictObject(credentialMembers);

/** The file of `--credentials`: what people build into the software that they try with a sandbox. */
export type FileCredentials = z.infer<typeof fileCredentials>;

/** Reads the file of credentials; null if there is no file yet. Throws `SandboxError`. */
export function readCredentials(file: string): FileCredentials | null {
  const text = readText('--credentials', file);
  if (text === null && !existsSync(dirname(file)))
    throw new SandboxError(`--credentials: there is no folder for ${file}`);
  return text === null ? null : parse(fileCredentials, file, text);
}

/** Writes the file of credentials for the next run, for its owner alone. Throws `SandboxError`. */
export function writeCredentials(file: string, facts: FileCredentials): void {
  writeJson('--credentials', file, credentialsOf(facts));
}

/** The credentials without other facts. */
export function credentialsOf(facts: FileCredentials): FileCredentials {
  const { api_key, product_key, product_secret, license_key } = facts;
  return { api_key, product_key, product_secret, license_key };
}

const port = z.int().min(1).max(65_535);

const keptFacts = z.strictObject({
  ...credentialMembers,
  port,
  agent_port: port.nullable(),
  holder_port: port.nullable(),
  /** Settings of the agent that come from the demo data; null: there is no demo data. */
  demo: z.record(z.string(), z.unknown()).nullable(),
});

/** What a sandbox needs to come back, besides the state of its daemons. */
export type KeptFacts = z.infer<typeof keptFacts>;

/** The folder with the data of a sandbox. */
export type SandboxFolder = {
  path: string;
  /** The facts of the last run; null: this is the first run. */
  kept: KeptFacts | null;
  /** Writes the facts for the next run. Throws `SandboxError`. */
  keep(facts: KeptFacts): void;
  /** Removes what does not stay. */
  close(): void;
};

/** A folder that is removed at the end. */
export function temporaryFolder(): SandboxFolder {
  const directory = makeTemporaryDirectory('latchkey-sandbox-');
  return {
    path: directory.path,
    kept: null,
    keep: () => undefined,
    close: () => directory[Symbol.dispose](),
  };
}

/** Opens the folder of `--keep`: that of an earlier sandbox, an empty one, or a new one. Throws `SandboxError`. */
export function keptFolder(name: string): SandboxFolder {
  const path = resolve(name);
  const file = join(path, 'sandbox.json');
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false)
    throw new SandboxError(`--keep: ${path} is a file: a folder is needed`);
  const text = readText('--keep', file);
  const kept = text === null ? null : parse(keptFacts, file, text);
  let isComplete = kept !== null;
  write('--keep', path, () => makeDirectory(path, 0o700));
  if (kept === null && readdirSync(path).length > 0)
    throw new SandboxError(`--keep: ${path} has other files in it: choose an empty folder`);
  return {
    path,
    kept,
    keep(facts) {
      writeJson('--keep', file, facts);
      isComplete = true;
    },
    close() {
      // A first run that failed leaves the folder as empty as it was.
      if (isComplete) return;
      for (const each of readdirSync(path)) rmSync(join(path, each), { recursive: true, force: true });
    },
  };
}

/** The address of the agent whose configuration is written: the default of `listen.tcp`. */
const agentAddress = '127.0.0.1:8787';

/** Checks the path of the configuration to be written, and returns it as an absolute path. Throws `SandboxError`. */
export function configurationFile(name: string): string {
  const file = resolve(name);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
    throw new SandboxError(
      `--write-config: ${file} is a folder: name a file, such as ${join(name, 'latchkey.yaml')}`,
    );
  return file;
}

/**
 * Writes the configuration of an agent in front of a store. A file with the same content stays as it is. Throws
 * `SandboxError` at any other file, which may be in use.
 */
export function writeAgentConfiguration(store: SandboxStore, file: string, settings: Tree): void {
  const { listen, ...base } = agentConfiguration(store, './latchkey-state');
  const tree = { ...base, listen: { ...listen, tcp: agentAddress }, ...settings };
  const text = `# An agent of a sandbox. Written by: latchkey sandbox\n${stringify(tree)}`;
  const present = readText('--write-config', file);
  if (present === text) return;
  if (present !== null)
    throw new SandboxError(
      `${file} exists: it is not overwritten. To use it as it is, leave --write-config out`,
    );
  write('--write-config', file, () => {
    makeDirectory(dirname(file), 0o700);
    replaceFile(file, text);
  });
}

function parse<Value>(schema: z.ZodType<Value>, file: string, text: string): Value {
  const read = schema.safeParse(parseJson(text));
  if (read.success) return read.data;
  const errors = read.error.issues.map(({ path, message }) => `${path.join('.') || 'file'}: ${message}`);
  throw new SandboxError(`${file}: ${errors.join('; ')}`);
}

function writeJson(option: string, file: string, value: object): void {
  write(option, file, () => replaceFile(file, `${JSON.stringify(value, null, 2)}\n`));
}

function write(option: string, path: string, writeIt: () => void): void {
  try {
    writeIt();
  } catch (error) {
    throw new SandboxError(`${option}: ${path} cannot be written: ${formatReason(error)}`);
  }
}

function readText(option: string, file: string): string | null {
  try {
    return readOwnFile(file);
  } catch (error) {
    throw new SandboxError(`${option}: ${file} cannot be read: ${formatReason(error)}`);
  }
}
