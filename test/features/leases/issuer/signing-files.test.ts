import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  readLease,
  readStatement,
  signDocument,
  thumbprintOf,
  type KeyPair,
} from '../../../../src/features/leases/documents.ts';
import { rotateKey, setUp } from '../../../../src/features/leases/issuer/signing-files.ts';
import {
  keyLifetimeMs,
  readSigningDirectory,
  signerOf,
} from '../../../../src/features/leases/issuer/signing-keys.ts';
import {
  documentClaims,
  keyPair,
  leaseIssuer,
  ownFiles,
  readKeyFile,
  setUpIssuer,
} from '../support/lease-builders.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const now = Date.UTC(2026, 10, 27);
const later = now + 300 * 86_400_000;

async function stateOf(directory: string) {
  const contents = await readSigningDirectory(directory);
  return { ...contents, signer: signerOf(contents, now) };
}

async function signingKeyOf(directory: string): Promise<KeyPair> {
  const { signer } = await stateOf(directory);
  if (signer === null) throw new Error('no key can sign');
  return signer.key;
}

/** Rotates with root key `number`. */
function rotate(
  { directory, rootKeys }: Awaited<ReturnType<typeof setUpIssuer>>,
  { at = now, number = 0, retired = null }: { at?: number; number?: 0 | 1; retired?: string | null } = {},
) {
  return rotateKey(directory, { root: rootKeys[number], retired }, at, ownFiles);
}

it('setting up makes two root keys, a signing key for 400 days, and its statement', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const { directory, rootsDirectory, kid, roots, rootKeys } = issuer;
  expect(readdirSync(rootsDirectory)).toEqual([
    'root-1.jwk',
    'root-1.pub.jwk',
    'root-2.jwk',
    'root-2.pub.jwk',
  ]);
  expect(readdirSync(directory).toSorted()).toEqual(
    [`${kid}.jwk`, 'root-1.pub.jwk', 'root-2.pub.jwk', 'statement.jwt'].toSorted(),
  );
  const { signer, faults } = await stateOf(directory);
  expect(faults).toEqual([]);
  expect(signer).toMatchObject({
    issuer: leaseIssuer,
    version: 1,
    key: { kid },
    notAfter: now + keyLifetimeMs,
  });
  const statement = readFileSync(join(directory, 'statement.jwt'), 'utf8').trim();
  expect(await readStatement(statement, [rootKeys[0].jwk])).toMatchObject({ ok: true });
  expect(roots.map((root) => root.kid)).toEqual(rootKeys.map((root) => root.kid));
});

it.skipIf(process.platform === 'win32')('all files of keys are readable by their owner alone', async () => {
  await using temporary = temporaryDirectory();
  const { directory, rootsDirectory } = await setUpIssuer(temporary.path, now);
  for (const folder of [directory, rootsDirectory]) {
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  }
});

it.skipIf(process.getuid?.() !== 0)(
  'files that root makes in the signing directory belong to the given owner, and root keys to root',
  async () => {
    await using temporary = temporaryDirectory();
    const directory = join(temporary.path, 'signing');
    const rootsDirectory = join(temporary.path, 'roots');
    const ownership = { ...ownFiles, owner: { uid: 12_345, gid: 23_456 } };
    const made = await setUp({ directory, rootsDirectory, issuer: leaseIssuer }, now, ownership);
    const root = await readKeyFile(made.roots[0].privateFile);
    await rotateKey(directory, { root, retired: null }, now, ownership);
    for (const path of [directory, ...readdirSync(directory).map((name) => join(directory, name))]) {
      expect([statSync(path).uid, statSync(path).gid]).toEqual([12_345, 23_456]);
    }
    expect(statSync(rootsDirectory).uid).toBe(0);
  },
);

it('setting up twice is refused, and changes nothing', async () => {
  await using temporary = temporaryDirectory();
  const { directory, rootsDirectory } = await setUpIssuer(temporary.path, now);
  const before = readdirSync(directory);
  await expect(
    setUp({ directory, rootsDirectory: join(temporary.path, 'other'), issuer: leaseIssuer }, now, ownFiles),
  ).rejects.toThrow(`is set up for ${leaseIssuer}. Nothing was changed.`);
  expect(existsSync(join(temporary.path, 'other'))).toBe(false);
  writeFileSync(join(directory, 'statement.jwt'), 'damaged');
  await expect(setUp({ directory, rootsDirectory, issuer: leaseIssuer }, now, ownFiles)).rejects.toThrow(
    'cannot be read',
  );
  expect(readdirSync(directory)).toEqual(before);
});

/** What each file operation of `setUp` leaves if the process ends after it. */
it('setting up can be interrupted after any file and repeated, and no part of it counts as set up', async () => {
  await using temporary = temporaryDirectory();
  const whole = await setUpIssuer(join(temporary.path, 'whole'), now);
  const order = [
    ['roots', 'root-1.jwk'],
    ['roots', 'root-1.pub.jwk'],
    ['roots', 'root-2.jwk'],
    ['roots', 'root-2.pub.jwk'],
    ['signing', 'root-1.pub.jwk'],
    ['signing', 'root-2.pub.jwk'],
    ['signing', `${whole.kid}.jwk`],
  ] as const;
  for (let count = 0; count <= order.length; count += 1) {
    const parent = join(temporary.path, `after-${count}`);
    for (const folder of ['roots', 'signing']) mkdirSync(join(parent, folder), { recursive: true });
    for (const [folder, name] of order.slice(0, count)) {
      writeFileSync(join(parent, folder, name), readFileSync(join(temporary.path, 'whole', folder, name)));
    }
    expect((await stateOf(join(parent, 'signing'))).statement).toBeNull();
    const repeated = await setUpIssuer(parent, now);
    expect((await stateOf(repeated.directory)).signer).toMatchObject({ key: { kid: repeated.kid } });
    expect(repeated.roots[0].kid === whole.roots[0].kid).toBe(count > 0);
  }
});

it('a lost signing directory is made again under the same root keys, with a statement that replaces the earlier ones', async () => {
  await using temporary = temporaryDirectory();
  const first = await setUpIssuer(temporary.path, now);
  rmSync(first.directory, { recursive: true });
  const second = await setUpIssuer(temporary.path, later);
  expect(second.roots).toEqual(first.roots);
  expect(second.kid).not.toBe(first.kid);
  expect(second.statement.version).toBeGreaterThan(first.statement.version + 1_000_000);
});

it('root keys that cannot be used are refused, and never overwritten', async () => {
  await using temporary = temporaryDirectory();
  const roots = join(temporary.path, 'roots');
  mkdirSync(roots);
  writeFileSync(join(roots, 'root-1.jwk'), '{"kty":"EC"}');
  await expect(setUpIssuer(temporary.path, now)).rejects.toThrow(
    'root-1.jwk is not a private P-256 key (JWK).',
  );
  expect(readFileSync(join(roots, 'root-1.jwk'), 'utf8')).toBe('{"kty":"EC"}');
  rmSync(join(roots, 'root-1.jwk'));
  writeFileSync(join(roots, 'root-2.pub.jwk'), '{}');
  await expect(setUpIssuer(temporary.path, now)).rejects.toThrow(
    'root-2.pub.jwk is there without root-2.jwk',
  );
  expect(existsSync(join(temporary.path, 'signing'))).toBe(false);
});

it('a new key signs from now on, and the earlier key stays valid, whichever root key signs the statement', async () => {
  for (const number of [0, 1] as const) {
    await using temporary = temporaryDirectory();
    const issuer = await setUpIssuer(temporary.path, now);
    const { statement, kid, notAfter, removed } = await rotate(issuer, { at: later, number });
    expect({ notAfter, removed }).toEqual({ notAfter: later + keyLifetimeMs, removed: [] });
    expect(statement).toMatchObject({ issuer: leaseIssuer, version: 2 });
    expect(statement.keys.map(({ jwk }) => thumbprintOf(jwk))).toEqual([issuer.kid, kid]);
    expect((await stateOf(issuer.directory)).signer).toMatchObject({ version: 2, key: { kid }, notAfter });
  }
});

it('a key that has ended leaves the statement, and loses its private file', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const { statement, kid, removed } = await rotate(issuer, { at: now + keyLifetimeMs });
  expect(statement.keys.map(({ jwk }) => thumbprintOf(jwk))).toEqual([kid]);
  expect(removed).toEqual([issuer.kid]);
  expect(existsSync(join(issuer.directory, `${issuer.kid}.jwk`))).toBe(false);
});

it('a leaked key is replaced by one statement, and loses its private file', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const { kid, removed } = await rotate(issuer, { retired: issuer.kid });
  expect(removed).toEqual([issuer.kid]);
  expect(existsSync(join(issuer.directory, `${issuer.kid}.jwk`))).toBe(false);
  expect((await stateOf(issuer.directory)).signer).toMatchObject({ version: 2, key: { kid } });
  await expect(rotate(issuer, { retired: issuer.kid })).rejects.toThrow('does not list the key');
});

it('a key that a rotation has left without a statement is deleted by the next rotation', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const installed = readFileSync(join(issuer.directory, 'statement.jwt'));
  const interrupted = await rotate(issuer);
  writeFileSync(join(issuer.directory, 'statement.jwt'), installed);
  const { kid, removed } = await rotate(issuer);
  expect(removed).toEqual([interrupted.kid]);
  expect((await stateOf(issuer.directory)).keys.map((key) => key.kid)).toEqual([kid, issuer.kid]);
});

it('a rotation by a key that is no root key of the issuer is refused, and nothing changes', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const before = readdirSync(issuer.directory);
  const installed = readFileSync(join(issuer.directory, 'statement.jwt'), 'utf8');
  for (const root of [await keyPair(), await signingKeyOf(issuer.directory)]) {
    await expect(rotateKey(issuer.directory, { root, retired: null }, now, ownFiles)).rejects.toThrow(
      'it needs a root key of this issuer',
    );
  }
  expect(readdirSync(issuer.directory)).toEqual(before);
  expect(readFileSync(join(issuer.directory, 'statement.jwt'), 'utf8')).toBe(installed);
});

it('a statement lists at most 20 keys, of which one must be retired to make another', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  for (let count = 1; count < 20; count += 1) await rotate(issuer);
  await expect(rotate(issuer)).rejects.toThrow('lists 20 keys already: retire one of them');
  const { statement } = await rotate(issuer, { retired: issuer.kid });
  expect(statement.keys).toHaveLength(20);
  expect((await stateOf(issuer.directory)).faults).toEqual([]);
});

it('a directory that is not set up has no key to rotate', async () => {
  await using temporary = temporaryDirectory();
  const { rootKeys } = await setUpIssuer(temporary.path, now);
  const empty = join(temporary.path, 'empty');
  await expect(rotateKey(empty, { root: rootKeys[0], retired: null }, now, ownFiles)).rejects.toThrow(
    'leases are not set up',
  );
});

it('a stolen signing key cannot make another key', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const [stolen, own] = [await signingKeyOf(issuer.directory), await keyPair()];
  const claims = { ...documentClaims(own, own).keys, version: 9 };
  for (const key of [
    stolen,
    { ...stolen, kid: issuer.rootKeys[0].kid },
    { ...own, kid: issuer.rootKeys[0].kid },
  ]) {
    const forged = await signDocument('keys', claims, key);
    expect(
      await readStatement(
        forged,
        issuer.rootKeys.map(({ jwk }) => jwk),
      ),
    ).toMatchObject({ ok: false });
  }
  // With the statement in force, a lease of a key of the thief is refused as well.
  const lease = await signDocument('lease', documentClaims(own, own).lease, own);
  expect(await readLease(lease, issuer.statement)).toMatchObject({ ok: false });
});

it('a retired key signs nothing that is accepted with the next statement', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const retired = await signingKeyOf(issuer.directory);
  const device = await keyPair();
  const lease = await signDocument('lease', documentClaims(device, retired).lease, retired);
  expect(await readLease(lease, issuer.statement)).toMatchObject({ ok: true });
  const { statement } = await rotate(issuer, { retired: retired.kid });
  expect(await readLease(lease, statement)).toMatchObject({ ok: false, problem: { code: 'lease_invalid' } });
});

it.skipIf(process.getuid?.() === 0)(
  'a directory that cannot be written leaves the keys as they were',
  async () => {
    await using temporary = temporaryDirectory();
    const issuer = await setUpIssuer(temporary.path, now);
    chmodSync(issuer.directory, 0o500);
    await expect(rotate(issuer)).rejects.toThrow('EACCES');
    expect((await stateOf(issuer.directory)).signer).toMatchObject({ key: { kid: issuer.kid } });
    chmodSync(issuer.directory, 0o700);
  },
);
