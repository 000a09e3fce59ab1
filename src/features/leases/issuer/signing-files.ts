import {
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  lchownSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  createFile,
  makeDirectory,
  renameOver,
  syncDirectory,
} from '../../../store/sqlite/files/private-file.ts';
import {
  maxKeysOfStatement,
  serializeStatement,
  type KeyStatement,
  type PrivateJwk,
  type PublicJwk,
} from '../wire/lease.ts';
import {
  newKey,
  publicPartOf,
  readPrivateKey,
  signDocument,
  thumbprintOf,
  type KeyPair,
} from '../documents.ts';
import { keyLifetimeMs, readSigningDirectory, signingFiles, type SigningDirectory } from './signing-keys.ts';

/*
 * Changes the signing directory. Each file is complete or missing, also after a crash, and the key statement is written
 * last: without it, a directory counts as empty, and `setUp` can be repeated.
 */

/** The request is refused, and nothing has changed. */
export class SigningFilesRefused extends Error {}

/** Whose the files are. */
export type Ownership = {
  /** The owner of new files, if this process is root; null: this user. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
  /** Restricts the rights of a new file or directory where modes do not do it (on Windows). */
  readonly restrict: (path: string, kind: 'file' | 'directory') => void;
};

/** A root key and its files. */
export type RootKey = {
  readonly kid: string;
  readonly jwk: PublicJwk;
  readonly privateFile: string;
  readonly publicFile: string;
};

export type SetUp = {
  readonly statement: KeyStatement;
  readonly kid: string;
  readonly roots: readonly [RootKey, RootKey];
};

/**
 * Makes two root keys, the first signing key and its statement. Root keys that are in `rootsDirectory` already are used
 * again, so that an interrupted call can be repeated, and a lost signing directory can be made again under the same roots.
 */
export async function setUp(
  { directory, rootsDirectory, issuer }: { directory: string; rootsDirectory: string; issuer: string },
  now: number,
  ownership: Ownership,
): Promise<SetUp> {
  const before = await readSigningDirectory(directory);
  if (existsSync(join(directory, signingFiles.statement))) {
    const what =
      before.statement === null
        ? 'has a key statement that cannot be read'
        : `is set up for ${before.statement.issuer}`;
    throw new SigningFilesRefused(`${directory} ${what}. Nothing was changed.`);
  }
  const own: Ownership = { ...ownership, owner: null };
  makePrivateDirectory(rootsDirectory, own);
  const isNew = ![1, 2].some((number) => existsSync(join(rootsDirectory, `root-${number}.jwk`)));
  const [first, second] = [await openRoot(rootsDirectory, 1), await openRoot(rootsDirectory, 2)];
  if (first.pair.kid === second.pair.kid) {
    throw new SigningFilesRefused(`${rootsDirectory} has the same root key twice.`);
  }
  for (const root of [first, second]) writeRoot(root, own);
  makePrivateDirectory(directory, ownership);
  for (const { pair, publicFile } of [first, second]) {
    writePrivateFile(join(directory, basename(publicFile)), formatKey(pair.jwk), ownership);
  }
  const key = await makeSigningKey(directory, ownership);
  const statement: KeyStatement = {
    issuer,
    // A statement of these roots may be in use elsewhere: seconds since 1970 are above its version.
    version: isNew ? 1 : Math.floor(now / 1000),
    keys: [{ jwk: key.jwk, notAfter: endOfNewKey(now) }],
  };
  const text = await signDocument('keys', serializeStatement(statement), first.pair);
  writePrivateFile(join(directory, signingFiles.statement), `${text}\n`, ownership);
  return { statement, kid: key.kid, roots: [nameRoot(first), nameRoot(second)] };
}

function nameRoot({ pair, privateFile, publicFile }: OpenRoot): RootKey {
  return { kid: pair.kid, jwk: pair.jwk, privateFile, publicFile };
}

type OpenRoot = {
  readonly pair: KeyPair;
  readonly privateFile: string;
  readonly publicFile: string;
  /** The text of a private key that is not written yet; null: it is in its file. */
  readonly unwritten: string | null;
};

/** Reads a root key, or makes one. */
async function openRoot(directory: string, number: number): Promise<OpenRoot> {
  const privateFile = join(directory, `root-${number}.jwk`);
  const publicFile = join(directory, `root-${number}.pub.jwk`);
  if (!existsSync(privateFile)) {
    if (existsSync(publicFile)) {
      throw new SigningFilesRefused(
        `${publicFile} is there without ${basename(privateFile)}: bring the private key back, or choose another directory.`,
      );
    }
    const { text, pair } = await makeKey();
    return { pair, privateFile, publicFile, unwritten: text };
  }
  const pair = await readPrivateKey(readFileSync(privateFile, 'utf8'));
  if (pair === null) throw new SigningFilesRefused(`${privateFile} is not a private P-256 key (JWK).`);
  return { pair, privateFile, publicFile, unwritten: null };
}

function writeRoot({ pair, privateFile, publicFile, unwritten }: OpenRoot, ownership: Ownership): void {
  if (unwritten !== null) writePrivateFile(privateFile, unwritten, ownership);
  writePrivateFile(publicFile, formatKey(pair.jwk), ownership);
}

/**
 * Makes a signing key, and a key statement with it that `root` signs. The statement lists the earlier keys that have not
 * ended, except `retired`. The private keys that it does not list are deleted. Throws `SigningFilesRefused`.
 */
export async function rotateKey(
  directory: string,
  { root, retired }: { root: KeyPair; retired: string | null },
  now: number,
  ownership: Ownership,
): Promise<{ statement: KeyStatement; kid: string; notAfter: number; removed: readonly string[] }> {
  const { statement: before, roots, keys: known } = await readInstalled(directory);
  if (!roots.some((jwk) => thumbprintOf(jwk) === root.kid))
    throw new SigningFilesRefused(`it needs a root key of this issuer: ${directory} has the public ones`);
  if (retired !== null && !before.keys.some(({ jwk }) => thumbprintOf(jwk) === retired))
    throw new SigningFilesRefused(`the statement does not list the key ${retired}`);
  const kept = before.keys.filter(({ jwk, notAfter }) => notAfter > now && thumbprintOf(jwk) !== retired);
  if (kept.length === maxKeysOfStatement)
    throw new SigningFilesRefused(`the statement lists ${kept.length} keys already: retire one of them`);
  const { kid, jwk } = await makeSigningKey(directory, ownership);
  const notAfter = endOfNewKey(now);
  const statement = {
    issuer: before.issuer,
    version: before.version + 1,
    keys: [...kept, { jwk, notAfter }],
  };
  const text = await signDocument('keys', serializeStatement(statement), root);
  writePrivateFile(join(directory, signingFiles.statement), `${text}\n`, ownership);
  const listed = new Set(statement.keys.map((key) => thumbprintOf(key.jwk)));
  const removed = known.filter((key) => key.pair !== null && !listed.has(key.kid)).map((key) => key.kid);
  for (const each of removed) rmSync(join(directory, `${each}.jwk`));
  return { statement, kid, notAfter, removed };
}

async function readInstalled(
  directory: string,
): Promise<SigningDirectory & { statement: NonNullable<SigningDirectory['statement']> }> {
  const contents = await readSigningDirectory(directory);
  const { statement, faults } = contents;
  if (statement === null) {
    throw new SigningFilesRefused(
      faults.length > 0
        ? faults.join(' ')
        : `leases are not set up in ${directory}: run latchkey lease setup`,
    );
  }
  return { ...contents, statement };
}

/** In whole seconds, as in documents. */
function endOfNewKey(now: number): number {
  return Math.floor((now + keyLifetimeMs) / 1000) * 1000;
}

/** The name of a key that begins with a dash would be taken for an option. */
async function makeSigningKey(directory: string, ownership: Ownership): Promise<KeyPair> {
  let made = await makeKey();
  while (made.pair.kid.startsWith('-')) made = await makeKey();
  writePrivateFile(join(directory, `${made.pair.kid}.jwk`), made.text, ownership);
  return made.pair;
}

async function makeKey(): Promise<{ text: string; pair: KeyPair }> {
  const text = formatKey(await newKey());
  const pair = await readPrivateKey(text);
  if (pair === null) throw new Error('a new key cannot be read');
  return { text, pair };
}

function formatKey(jwk: PublicJwk | PrivateJwk): string {
  const secret = 'd' in jwk ? { d: jwk.d } : {};
  return `${JSON.stringify({ ...publicPartOf(jwk), ...secret }, null, 2)}\n`;
}

function makePrivateDirectory(path: string, { owner, restrict }: Ownership): void {
  if (existsSync(path)) return;
  makeDirectory(path, 0o700);
  restrict(path, 'directory');
  if (owner !== null) lchownSync(path, owner.uid, owner.gid);
  syncDirectory(dirname(path));
}

/** Writes a file with mode 600: complete and durable, or not at all. */
function writePrivateFile(path: string, text: string, { owner, restrict }: Ownership): void {
  const draft = `${path}.new`;
  const file = createFile(draft);
  try {
    restrict(draft, 'file');
    if (owner !== null) fchownSync(file, owner.uid, owner.gid);
    writeFileSync(file, text);
    fsyncSync(file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  renameOver(draft, path);
  syncDirectory(dirname(path));
}
