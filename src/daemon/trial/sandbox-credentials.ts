import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { formatReason } from '../../config/fault/fault.ts';
import { maximumLicenseKeyLength } from '../../domain/license-key.ts';
import { shortestSecret } from '../../service/access/secret.ts';
import { readOwnFile, replaceFile } from '../../store/sqlite/files/private-file.ts';

const secret = z.string().min(shortestSecret).max(200);

/** What people build into the software that they try a sandbox with; the names are those of the file. */
export type SandboxCredentials = {
  api_key: string;
  product_key: string;
  product_secret: string;
  license_key: string;
};

const schema: z.ZodType<SandboxCredentials> = z.strictObject({
  api_key: secret,
  product_key: z.string().min(1).max(100),
  product_secret: secret,
  license_key: z.string().min(1).max(maximumLicenseKeyLength),
});

/** Why no sandbox is started: a file that cannot be used. The message is for people and repeats no secret. */
export class SandboxRefused extends Error {}

/** The credentials in a file; null when it is yet to be written. Throws `SandboxRefused`. */
export function readCredentials(file: string): SandboxCredentials | null {
  const text = readText(file);
  if (text === null && !existsSync(dirname(file)))
    throw new SandboxRefused(`--credentials: there is no folder for ${file}`);
  if (text === null) return null;
  const read = schema.safeParse(parseJson(text));
  if (read.success) return read.data;
  const faults = read.error.issues.map(({ path, message }) => `${path.join('.') || 'it'}: ${message}`);
  throw new SandboxRefused(`${file}: ${faults.join('; ')}`);
}

/** Keeps the credentials for the next run (0600). Throws `SandboxRefused`. */
export function writeCredentials(file: string, credentials: SandboxCredentials): void {
  const { api_key, product_key, product_secret, license_key } = credentials;
  const text = `${JSON.stringify({ api_key, product_key, product_secret, license_key }, null, 2)}\n`;
  writeFor('--credentials', file, () => replaceFile(file, text));
}

/** Writes a file that an option names. Throws `SandboxRefused`. */
export function writeFor(option: string, file: string, write: () => void): void {
  try {
    write();
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
