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
import { createFile, makeDirectory, renameOver, syncDirectory } from '../store/sqlite/files/private-file.ts';
import {
  parseStatementClaims,
  serializeStatement,
  statementClaims,
  type KeyStatement,
  type PrivateJwk,
  type PublicJwk,
} from '../wire/lease.ts';
import {
  findStatementFault,
  newKey,
  publicPartOf,
  readPrivateKey,
  readStatement,
  signDocument,
  thumbprintOf,
  type KeyPair,
} from './documents.ts';
import {
  keyLifetimeMs,
  listKeys,
  readSigningDirectory,
  signerOf,
  signingFiles,
  type SigningDirectory,
} from './signing-keys.ts';

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

/** Makes a signing key, and returns a draft of the next statement, which lists it. */
export async function addKey(
  directory: string,
  now: number,
  ownership: Ownership,
): Promise<{ kid: string; draft: KeyStatement }> {
  const { statement } = await readInstalled(directory);
  const key = await makeSigningKey(directory, ownership);
  const keys = statement.keys.filter(({ notAfter }) => notAfter > now);
  const added = { jwk: key.jwk, notAfter: endOfNewKey(now) };
  return { kid: key.kid, draft: { ...nextOf(statement), keys: [...keys, added] } };
}

/** Returns a draft of the next statement without a key. `draft`: a draft to change; null: the installed statement. */
export async function retireKey(
  directory: string,
  kid: string,
  draft: KeyStatement | null,
  now: number,
): Promise<KeyStatement> {
  const contents = await readInstalled(directory);
  const base = draft ?? nextOf(contents.statement);
  const keys = base.keys.filter(({ jwk, notAfter }) => thumbprintOf(jwk) !== kid && notAfter > now);
  if (!base.keys.some(({ jwk }) => thumbprintOf(jwk) === kid)) {
    throw new SigningFilesRefused(`the statement does not list the key ${kid}`);
  }
  const here = new Set(contents.keys.filter(({ pair }) => pair !== null).map((key) => key.kid));
  if (!keys.some(({ jwk }) => here.has(thumbprintOf(jwk)))) {
    throw new SigningFilesRefused('no other key could sign here: add a key first');
  }
  return { ...base, keys };
}

/** Takes over a signed statement, and removes the private keys that it no longer lists. `kid`: the key that signs now. */
export async function installStatement(
  text: string,
  directory: string,
  now: number,
  ownership: Ownership,
): Promise<{ statement: KeyStatement; kid: string; removed: readonly string[] }> {
  const before = await readSigningDirectory(directory);
  if (before.roots.length === 0) {
    throw new SigningFilesRefused(`${directory} has no public root key (root-1.pub.jwk): it is not set up`);
  }
  const read = await readStatement(text, before.roots);
  if (!read.ok) throw new SigningFilesRefused(read.problem.detail);
  const statement = read.value;
  if (before.statement !== null) checkSuccessor(statement, before.statement);
  const pairs = before.keys.flatMap(({ pair }) => (pair === null ? [] : [pair]));
  const next = { ...before, statement: { ...statement, text }, keys: listKeys(statement, pairs) };
  const signer = signerOf(next, now);
  if (signer === null) {
    throw new SigningFilesRefused(
      'none of its keys could sign here: each has ended, or has no private key here',
    );
  }
  writePrivateFile(join(directory, signingFiles.statement), `${text}\n`, ownership);
  const retired = before.keys.filter(
    ({ kid, notAfter, pair }) =>
      notAfter !== null && pair !== null && !statement.keys.some(({ jwk }) => thumbprintOf(jwk) === kid),
  );
  for (const { kid } of retired) rmSync(join(directory, `${kid}.jwk`));
  return { statement, kid: signer.key.kid, removed: retired.map(({ kid }) => kid) };
}

function checkSuccessor(next: KeyStatement, installed: KeyStatement): void {
  if (next.issuer !== installed.issuer) {
    throw new SigningFilesRefused(
      `it is of the issuer ${next.issuer}, and this issuer is ${installed.issuer}`,
    );
  }
  if (next.version <= installed.version) {
    throw new SigningFilesRefused(
      `its version is ${next.version}, and version ${installed.version} is installed: it must be higher`,
    );
  }
}

/** The version of the next statement. */
export async function nextVersion(directory: string): Promise<number> {
  return (await readInstalled(directory)).statement.version + 1;
}

/** Reads a draft that people may have changed. Throws `SigningFilesRefused` with a sentence that says what is wrong. */
export async function parseDraft(text: string, now: number): Promise<KeyStatement> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new SigningFilesRefused('it is not JSON');
  }
  const parsed = statementClaims.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new SigningFilesRefused(
      [issue?.path.join('.'), issue?.message].filter((part) => part !== '').join(': '),
    );
  }
  const draft = parseStatementClaims(parsed.data);
  const fault = await findStatementFault(draft, []);
  if (fault !== null) throw new SigningFilesRefused(fault);
  if (!draft.keys.some(({ notAfter }) => notAfter > now))
    throw new SigningFilesRefused('it lists no key that has not ended');
  const last = Math.max(...draft.keys.map(({ notAfter }) => notAfter));
  if (last > endOfNewKey(now)) throw new SigningFilesRefused('it lists a key for more than 400 days');
  return draft;
}

/** The text of a draft. */
export function formatDraft(draft: KeyStatement): string {
  return `${JSON.stringify(serializeStatement(draft), null, 2)}\n`;
}

/** Signs a draft with a root key. */
export async function signDraft(draft: KeyStatement, root: KeyPair): Promise<string> {
  if (draft.keys.some(({ jwk }) => thumbprintOf(jwk) === root.kid)) {
    throw new SigningFilesRefused('it lists the root key: a root key signs nothing except key statements');
  }
  return await signDocument('keys', serializeStatement(draft), root);
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

function nextOf({ issuer, version, keys }: KeyStatement): KeyStatement {
  return { issuer, version: version + 1, keys };
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
