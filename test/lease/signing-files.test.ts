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
} from '../../src/lease/documents.ts';
import {
  addKey,
  formatDraft,
  installStatement,
  parseDraft,
  retireKey,
  setUp,
  signDraft,
  type SetUp,
} from '../../src/lease/signing-files.ts';
import { keyLifetimeMs, readSigningDirectory, signerOf } from '../../src/lease/signing-keys.ts';
import type { KeyStatement } from '../../src/wire/lease.ts';
import {
  documentClaims,
  keyPair,
  leaseIssuer,
  ownFiles,
  setUpIssuer,
} from '../support/builders/lease-builders.ts';
import { temporaryDirectory } from '../support/temporary.ts';

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

function install(text: string, directory: string, at = now) {
  return installStatement(text, directory, at, ownFiles);
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
    await setUp({ directory, rootsDirectory, issuer: leaseIssuer }, now, ownership);
    await addKey(directory, now, ownership);
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

/** Adds a key and installs the statement that root key `number` signs. */
async function rotate(
  issuer: Awaited<ReturnType<typeof setUpIssuer>>,
  at: number,
  number: 0 | 1 = 0,
): Promise<string> {
  const { kid, draft } = await addKey(issuer.directory, at, ownFiles);
  await install(await signDraft(draft, issuer.rootKeys[number]), issuer.directory, at);
  return kid;
}

it('an added key signs only after its statement is installed, signed by either root key', async () => {
  for (const number of [0, 1] as const) {
    await using temporary = temporaryDirectory();
    const issuer = await setUpIssuer(temporary.path, now);
    const { kid, draft } = await addKey(issuer.directory, later, ownFiles);
    expect(draft).toMatchObject({ issuer: leaseIssuer, version: 2 });
    expect(draft.keys.map(({ jwk }) => thumbprintOf(jwk))).toEqual([issuer.kid, kid]);
    expect((await stateOf(issuer.directory)).signer).toMatchObject({ version: 1, key: { kid: issuer.kid } });
    await install(await signDraft(draft, issuer.rootKeys[number]), issuer.directory, later);
    expect((await stateOf(issuer.directory)).signer).toMatchObject({
      version: 2,
      key: { kid },
      notAfter: later + keyLifetimeMs,
    });
  }
});

it('a draft leaves out keys that have ended', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const { kid, draft } = await addKey(issuer.directory, now + keyLifetimeMs, ownFiles);
  expect(draft.keys.map(({ jwk }) => thumbprintOf(jwk))).toEqual([kid]);
});

it('a retired key loses its private file when the statement without it is installed, and not before', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  await expect(retireKey(issuer.directory, issuer.kid, null, now)).rejects.toThrow(
    'no other key could sign here: add a key first',
  );
  const added = await rotate(issuer, now);
  const draft = await retireKey(issuer.directory, issuer.kid, null, now);
  expect(draft).toMatchObject({ version: 3 });
  const file = join(issuer.directory, `${issuer.kid}.jwk`);
  expect(existsSync(file)).toBe(true);
  expect(await install(await signDraft(draft, issuer.rootKeys[0]), issuer.directory)).toMatchObject({
    removed: [issuer.kid],
  });
  expect(existsSync(file)).toBe(false);
  expect((await stateOf(issuer.directory)).signer).toMatchObject({ key: { kid: added } });
  await expect(retireKey(issuer.directory, issuer.kid, null, now)).rejects.toThrow('does not list the key');
});

it('a leaked key is replaced by one statement: the draft with the new key loses the old key', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const { kid, draft } = await addKey(issuer.directory, now, ownFiles);
  const both = await retireKey(issuer.directory, issuer.kid, draft, now);
  expect(both).toMatchObject({ version: 2 });
  expect(await install(await signDraft(both, issuer.rootKeys[0]), issuer.directory)).toMatchObject({
    removed: [issuer.kid],
  });
  expect((await stateOf(issuer.directory)).signer).toMatchObject({ version: 2, key: { kid } });
});

it('a statement that does not fit is refused, and the installed one stays', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const [root] = issuer.rootKeys;
  const foreign = await keyPair();
  const installed = readFileSync(join(issuer.directory, 'statement.jwt'), 'utf8');
  const { draft } = await addKey(issuer.directory, now, ownFiles);
  const sign = (change: Partial<KeyStatement>, key = root) => signDraft({ ...draft, ...change }, key);
  const end = now + keyLifetimeMs;
  for (const [text, reason] of [
    [await sign({}, foreign), 'None of the known root keys has signed'],
    [await sign({}, { ...foreign, kid: root.kid }), 'The signature is wrong.'],
    [await sign({ version: 1 }), 'its version is 1, and version 1 is installed: it must be higher'],
    [
      await sign({ issuer: 'https://other.example' }),
      'it is of the issuer https://other.example, and this issuer is',
    ],
    [await sign({ keys: [{ jwk: foreign.jwk, notAfter: end }] }), 'none of its keys could sign here'],
    [
      await sign({ keys: draft.keys.map(({ jwk }) => ({ jwk, notAfter: now })) }),
      'none of its keys could sign here',
    ],
    [await sign({ keys: [] }), 'none of its keys could sign here'],
    [formatDraft(draft), 'The document is not a signed document'],
    ['', 'The document is not a signed document'],
  ] as const) {
    await expect(install(text, issuer.directory)).rejects.toThrow(reason);
    expect(readFileSync(join(issuer.directory, 'statement.jwt'), 'utf8')).toBe(installed);
  }
});

it('a statement is not installed where no root key is known', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const text = readFileSync(join(issuer.directory, 'statement.jwt'), 'utf8').trim();
  const empty = join(temporary.path, 'empty');
  await expect(install(text, empty)).rejects.toThrow('it is not set up');
});

it('a draft that was changed by hand is read, and nonsense is refused with its reason', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const { draft } = await addKey(issuer.directory, now, ownFiles);
  const text = formatDraft(draft);
  expect(await parseDraft(text, now)).toEqual(draft);
  const [first] = draft.keys;
  const change = (changed: Record<string, unknown>) => JSON.stringify({ ...JSON.parse(text), ...changed });
  for (const [changed, reason] of [
    ['', 'it is not JSON'],
    ['[]', 'expected object'],
    [change({ version: 0 }), 'version: Too small'],
    [change({ version: '2' }), 'version: Invalid input: expected number'],
    [change({ keys: 'none' }), 'keys: Invalid input: expected array'],
    [change({ keys: [] }), 'it lists no key that has not ended'],
    [change({ note: 'mine' }), 'Unrecognized key: "note"'],
    [change({ keys: [{ jwk: first?.jwk, not_after: now + 1 }] }), 'it lists a key for more than 400 days'],
    [change({ keys: [{ jwk: { ...first?.jwk, d: 'AAAA' }, not_after: 1 }] }), 'Unrecognized key: "d"'],
    [
      change({
        keys: [
          { jwk: first?.jwk, not_after: 1 },
          { jwk: first?.jwk, not_after: 2 },
        ],
      }),
      'lists a key twice',
    ],
  ] as const) {
    await expect(parseDraft(changed, now)).rejects.toThrow(reason);
  }
  const own: KeyStatement = { ...draft, keys: [{ jwk: issuer.rootKeys[0].jwk, notAfter: now + 1000 }] };
  await expect(signDraft(own, issuer.rootKeys[0])).rejects.toThrow('it lists the root key');
});

it('a stolen signing key cannot install a key', async () => {
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
    await expect(install(forged, issuer.directory)).rejects.toThrow(
      /root keys has signed|signature is wrong/,
    );
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
  await rotate(issuer, now);
  const draft = await retireKey(issuer.directory, retired.kid, null, now);
  const { statement } = await install(await signDraft(draft, issuer.rootKeys[0]), issuer.directory);
  expect(await readLease(lease, statement)).toMatchObject({ ok: false, problem: { code: 'lease_invalid' } });
});

it.skipIf(process.getuid?.() === 0)(
  'a directory that cannot be written leaves the keys as they were',
  async () => {
    await using temporary = temporaryDirectory();
    const issuer: SetUp & { directory: string } = await setUpIssuer(temporary.path, now);
    chmodSync(issuer.directory, 0o500);
    await expect(addKey(issuer.directory, now, ownFiles)).rejects.toThrow('EACCES');
    expect((await stateOf(issuer.directory)).signer).toMatchObject({ key: { kid: issuer.kid } });
    chmodSync(issuer.directory, 0o700);
  },
);
