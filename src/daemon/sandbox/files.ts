import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { formatReason } from '../../config/errors.ts';
import { maximumLicenseKeyLength } from '../../domain/license-key.ts';
import { shortestSecret } from '../../service/access/secret.ts';
import { makeDirectory, readOwnFile, replaceFile } from '../../store/sqlite/files/private-file.ts';
import { agentConfiguration } from './agent.ts';
import type { SandboxStore } from './store.ts';

const secret = z.string().min(shortestSecret).max(200);

const fileCredentials = z.strictObject({
  api_key: secret,
  product_key: z.string().min(1).max(100),
  product_secret: secret,
  license_key: z.string().min(1).max(maximumLicenseKeyLength),
});

/** The file of `--credentials`: what people build into the software that they try with a sandbox. */
export type FileCredentials = z.infer<typeof fileCredentials>;

/** A file of the sandbox cannot be used. The message repeats no secret. */
export class SandboxRefused extends Error {}

/** Reads the file of credentials; null if there is no file yet. Throws `SandboxRefused`. */
export function readCredentials(file: string): FileCredentials | null {
  const text = readText(file);
  if (text === null && !existsSync(dirname(file)))
    throw new SandboxRefused(`--credentials: there is no folder for ${file}`);
  if (text === null) return null;
  const read = fileCredentials.safeParse(parseJson(text));
  if (read.success) return read.data;
  const errors = read.error.issues.map(({ path, message }) => `${path.join('.') || 'file'}: ${message}`);
  throw new SandboxRefused(`${file}: ${errors.join('; ')}`);
}

/** Writes the file of credentials for the next run, for its owner alone. Throws `SandboxRefused`. */
export function writeCredentials(file: string, credentials: FileCredentials): void {
  write('--credentials', file, () => replaceFile(file, `${JSON.stringify(credentials, null, 2)}\n`));
}

/**
 * The path of a new configuration of an agent in a folder. Throws `SandboxRefused` if there is a configuration, which may
 * be in use, or if the folder is a file.
 */
export function newConfigurationFile(folder: string): string {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === false) {
    throw new SandboxRefused(`${folder} is a file: a folder is needed for the configuration`);
  }
  const file = join(resolve(folder), 'latchkey.yaml');
  if (existsSync(file)) throw new SandboxRefused(`${file} exists: it is not overwritten`);
  return file;
}

/** Writes the configuration of an agent in front of a store. Throws `SandboxRefused`. */
export function writeAgentConfiguration(store: SandboxStore, file: string): void {
  const folder = dirname(file);
  write('--write-config', file, () => {
    makeDirectory(folder, 0o700);
    replaceFile(file, stringify(agentConfiguration(store, join(folder, 'state'))));
  });
}

function write(option: string, file: string, writeFile: () => void): void {
  try {
    writeFile();
  } catch (error) {
    throw new SandboxRefused(`${option}: ${file} cannot be written: ${formatReason(error)}`);
  }
}

function readText(file: string): string | null {
  try {
    return readOwnFile(file);
  } catch (error) {
    throw new SandboxRefused(`--credentials: ${file} cannot be read: ${formatReason(error)}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
