import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { done, failWith, type Result } from '../../../domain/problem/problem.ts';
import { dayMs, formatDatetime } from '../../../domain/time.ts';
import type { Log } from '../../../service/ports.ts';
import { keyEndsSoonMs } from '../domain/lease.ts';
import type { KeyStatement, PublicJwk } from '../wire/lease.ts';
import { readPrivateKey, readPublicKey, readStatement, thumbprintOf, type KeyPair } from '../documents.ts';
import { stampOf, statementFile } from './statement-file.ts';

/*
 * The signing directory of an issuer: the key statement, the public root keys, and one file for each private signing key.
 * Several nodes can share it. Commands change it while daemons run (signing-files.ts).
 */

/** The names of files in the signing directory. */
export const signingFiles = {
  statement: statementFile,
  rootPattern: /^root-\d+\.pub\.jwk$/,
  keyPattern: /^(?<kid>[A-Za-z0-9_-]{43})\.jwk$/,
} as const;

/** How long a signing key is valid. */
export const keyLifetimeMs: number = 400 * dayMs;
/** The files are small; a larger file is another file. */
const maxFileBytes = 16 * 1024;

/** A key of the statement, or a private key that the statement does not list. */
export type SigningKey = {
  readonly kid: string;
  /** Epoch ms; null: the statement does not list the key. */
  readonly notAfter: number | null;
  /** The private key, if its file is here. */
  readonly pair: KeyPair | null;
};

/** What is in a signing directory. */
export type SigningDirectory = {
  readonly roots: readonly PublicJwk[];
  /** `text`: as it is signed; null: none is installed. */
  readonly statement: (KeyStatement & { readonly text: string }) | null;
  /** Keys of the statement, latest end first; then private keys that it does not list. */
  readonly keys: readonly SigningKey[];
  /** Sentences about files that cannot be used. They contain nothing of a private key. */
  readonly faults: readonly string[];
};

/** What an issuer signs with. */
export type Signer = {
  readonly issuer: string;
  /** The key statement: its text and its version. */
  readonly statement: string;
  readonly version: number;
  readonly key: KeyPair;
  /** No lease that the key signs may expire later. Epoch ms. */
  readonly notAfter: number;
};

/** Reads a signing directory. Files that cannot be used are faults. */
export async function readSigningDirectory(directory: string): Promise<SigningDirectory> {
  const faults: string[] = [];
  const names = namesIn(directory, faults);
  const roots: PublicJwk[] = [];
  for (const name of names.filter((each) => signingFiles.rootPattern.test(each))) {
    const root = await readPublicKey(readSmallFile(directory, name, faults) ?? '');
    if (root === null) faults.push(`${name} is not a public P-256 key.`);
    else roots.push(root);
  }
  const pairs: KeyPair[] = [];
  for (const name of names) {
    const kid = signingFiles.keyPattern.exec(name)?.groups?.['kid'];
    if (kid === undefined) continue;
    const pair = await readPrivateKey(readSmallFile(directory, name, faults) ?? '');
    if (pair?.kid === kid) pairs.push(pair);
    else
      faults.push(
        pair === null ? `${name} is not a private P-256 key.` : `${name} has another key than its name.`,
      );
  }
  const statement = names.includes(signingFiles.statement)
    ? await readInstalled(directory, roots, faults)
    : null;
  return { roots, statement, keys: listKeys(statement, pairs), faults };
}

function namesIn(directory: string, faults: string[]): readonly string[] {
  try {
    return readdirSync(directory).toSorted();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') faults.push(`${directory} cannot be read: ${codeOf(error)}.`);
    return [];
  }
}

async function readInstalled(
  directory: string,
  roots: readonly PublicJwk[],
  faults: string[],
): Promise<SigningDirectory['statement']> {
  const text = readSmallFile(directory, signingFiles.statement, faults)?.trim();
  if (text === undefined) return null;
  if (roots.length === 0) {
    faults.push(`The public root keys are missing: copy root-1.pub.jwk and root-2.pub.jwk to ${directory}.`);
    return null;
  }
  const read = await readStatement(text, roots);
  if (read.ok) return { ...read.value, text };
  faults.push(`${signingFiles.statement} is not valid. ${read.problem.detail}`);
  return null;
}

/** Of keys with the same end, the statement lists the newer key last. */
function listKeys(statement: KeyStatement | null, pairs: readonly KeyPair[]): readonly SigningKey[] {
  const listed = (statement?.keys ?? []).map(({ jwk, notAfter }) => {
    const kid = thumbprintOf(jwk);
    return { kid, notAfter, pair: pairs.find((pair) => pair.kid === kid) ?? null };
  });
  const names = new Set(listed.map(({ kid }) => kid));
  const others = pairs.filter(({ kid }) => !names.has(kid));
  return [
    ...listed.toReversed().toSorted((one, other) => other.notAfter - one.notAfter),
    ...others.map((pair) => ({ kid: pair.kid, notAfter: null, pair })),
  ];
}

function readSmallFile(directory: string, name: string, faults: string[]): string | null {
  const path = join(directory, name);
  try {
    const status = statSync(path);
    // Reading a pipe would block.
    if (!status.isFile() || status.size > maxFileBytes)
      throw Object.assign(new Error(), { code: 'no small file' });
    return readFileSync(path, 'utf8');
  } catch (error) {
    faults.push(`${path} cannot be read: ${codeOf(error)}.`);
    return null;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** The key that signs: the statement lists it, its private file is here, and it ends last. Null: none is left. */
export function signerOf({ statement, keys }: SigningDirectory, now: number): Signer | null {
  if (statement === null) return null;
  const { issuer, text, version } = statement;
  for (const { notAfter, pair } of keys) {
    if (notAfter !== null && notAfter > now && pair !== null)
      return { issuer, statement: text, version, key: pair, notAfter };
  }
  return null;
}

/** How long to wait before a directory without a usable key is read again, in ms. */
const retryMs = 1000;

/** The signing keys of a running issuer. Each request looks whether a command has changed the statement. */
export class SigningKeys {
  readonly #directory: string;
  readonly #statementPath: string;
  readonly #log: Log;
  #read: {
    readonly stamp: string | null;
    readonly at: number;
    readonly contents: Promise<SigningDirectory>;
  } | null = null;
  #isUsable = true;
  #logged = '';
  #warnedAt = -Infinity;

  constructor(directory: string, log: Log) {
    this.#directory = directory;
    this.#statementPath = join(directory, signingFiles.statement);
    this.#log = log;
  }

  /** The key that signs at this time (epoch ms), and the key statement. Fails with `leases_not_set_up`. */
  async current(now: number): Promise<Result<Signer>> {
    const contents = await this.#contents(now);
    const signer = signerOf(contents, now);
    this.#isUsable = signer !== null;
    if (signer !== null) {
      this.#logged = '';
      this.#warnOfEnd(signer, now);
      return done(signer);
    }
    const { statement, faults } = contents;
    if (statement === null && faults.length === 0) {
      this.#read = null;
      return failWith('leases_not_set_up', 'Leases are not set up here.');
    }
    // Anybody can read the response: the names of files are only in the log.
    this.#logOnce(
      faults.length > 0
        ? faults
        : ['No key of the key statement can sign: each has ended, or its file is missing.'],
    );
    return failWith('leases_not_set_up', 'The issuer has no usable signing key: see its log.');
  }

  async #contents(now: number): Promise<SigningDirectory> {
    const stamp = stampOf(this.#statementPath);
    const isOld = !this.#isUsable && Math.abs(now - (this.#read?.at ?? now)) >= retryMs;
    if (this.#read === null || this.#read.stamp !== stamp || isOld) {
      this.#read = { stamp, at: now, contents: readSigningDirectory(this.#directory) };
    }
    return await this.#read.contents;
  }

  #logOnce(faults: readonly string[]): void {
    const text = faults.join(' ');
    if (text === this.#logged) return;
    this.#logged = text;
    this.#log.error({ directory: this.#directory, faults }, 'leases cannot be signed');
  }

  #warnOfEnd({ key, notAfter }: Signer, now: number): void {
    if (notAfter - now >= keyEndsSoonMs || now - this.#warnedAt < dayMs) return;
    this.#warnedAt = now;
    this.#log.warn(
      { kid: key.kid, until: formatDatetime(notAfter) },
      'the last signing key ends soon: run latchkey lease signing-key rotate',
    );
  }
}
