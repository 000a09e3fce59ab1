import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newKey, readPrivateKey } from '../../../../src/features/leases/documents.ts';
import { rotateKey } from '../../../../src/features/leases/issuer/signing-files.ts';
import { keyLifetimeMs, SigningKeys } from '../../../../src/features/leases/issuer/signing-keys.ts';
import type { Log } from '../../../../src/service/ports.ts';
import { leaseIssuer, ownFiles, setUpIssuer } from '../support/lease-builders.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const now = Date.UTC(2026, 10, 27);
const dayMs = 86_400_000;

type Line = { level: string; fields: Record<string, unknown>; message: string };

function recordingLog(): Log & { lines: Line[] } {
  const lines: Line[] = [];
  const level = (name: string) => (fields: Record<string, unknown>, message: string) =>
    void lines.push({ level: name, fields, message });
  return { lines, debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') };
}

it('an issuer without a signing directory says that leases are not set up, and finds the directory without a restart', async () => {
  await using temporary = temporaryDirectory();
  const log = recordingLog();
  const keys = new SigningKeys(join(temporary.path, 'signing'), log);
  const missing = {
    ok: false,
    problem: { code: 'leases_not_set_up', detail: 'Leases are not set up here.' },
  };
  expect(await keys.current(now)).toEqual(missing);
  const issuer = await setUpIssuer(temporary.path, now);
  expect(await keys.current(now)).toMatchObject({
    ok: true,
    value: { issuer: leaseIssuer, version: 1, key: { kid: issuer.kid }, notAfter: now + keyLifetimeMs },
  });
  expect(log.lines).toEqual([]);
});

it('a new statement is in force at once', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const keys = new SigningKeys(issuer.directory, recordingLog());
  expect(await keys.current(now)).toMatchObject({ value: { key: { kid: issuer.kid } } });
  const rotation = { root: issuer.rootKeys[0], retired: null };
  const { kid } = await rotateKey(issuer.directory, rotation, now + dayMs, ownFiles);
  expect(await keys.current(now + dayMs)).toMatchObject({ value: { version: 2, key: { kid } } });
});

it('concurrent requests read a changed directory once', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const keys = new SigningKeys(issuer.directory, recordingLog());
  const all = await Promise.all(Array.from({ length: 20 }, () => keys.current(now)));
  const signers = new Set(all.map((result) => (result.ok ? result.value.key : null)));
  expect(signers.size).toBe(1);
});

it('nothing is signed after the last key has ended', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const log = recordingLog();
  const keys = new SigningKeys(issuer.directory, log);
  const end = now + keyLifetimeMs;
  expect(await keys.current(end - 1)).toMatchObject({ ok: true });
  expect(await keys.current(end)).toMatchObject({ ok: false, problem: { code: 'leases_not_set_up' } });
  expect(log.lines.at(-1)).toMatchObject({ level: 'error', message: 'leases cannot be signed' });
});

it('the end of the last key is logged 60 days before, once a day', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const log = recordingLog();
  const keys = new SigningKeys(issuer.directory, log);
  const soon = now + keyLifetimeMs - 60 * dayMs;
  await keys.current(soon);
  expect(log.lines).toEqual([]);
  for (const at of [1, 2, dayMs, dayMs + 1, dayMs + 2]) await keys.current(soon + at);
  expect(log.lines.map(({ level, message }) => [level, message])).toEqual(
    Array.from({ length: 2 }, () => [
      'warn',
      'the last signing key ends soon: run latchkey lease signing-key rotate',
    ]),
  );
});

it.each<[name: string, spoil: (directory: string, kid: string) => void | Promise<void>, reason: RegExp]>([
  [
    'a damaged statement',
    (directory) => writeFileSync(join(directory, 'statement.jwt'), 'nonsense'),
    /statement.jwt is not valid. The document is not a signed document/,
  ],
  [
    'a statement that is a directory',
    (directory) => {
      rmSync(join(directory, 'statement.jwt'));
      mkdirSync(join(directory, 'statement.jwt'));
    },
    /statement.jwt cannot be read: no small file/,
  ],
  [
    'no public root key',
    (directory) => {
      for (const number of [1, 2]) rmSync(join(directory, `root-${number}.pub.jwk`));
    },
    /The public root keys are missing/,
  ],
  [
    'root keys of another issuer',
    async (directory) => {
      await using other = temporaryDirectory();
      const { directory: there } = await setUpIssuer(other.path, now);
      for (const number of [1, 2]) {
        writeFileSync(
          join(directory, `root-${number}.pub.jwk`),
          readFileSync(join(there, `root-${number}.pub.jwk`)),
        );
      }
    },
    /None of the known root keys has signed the key statement/,
  ],
  [
    'a damaged private key',
    (directory, kid) => writeFileSync(join(directory, `${kid}.jwk`), '{"kty":"EC"}'),
    /\.jwk is not a private P-256 key/,
  ],
  [
    'another private key under the name of the key',
    async (directory, kid) => writeFileSync(join(directory, `${kid}.jwk`), JSON.stringify(await newKey())),
    /\.jwk has another key than its name/,
  ],
  ['no private key', (directory, kid) => rmSync(join(directory, `${kid}.jwk`)), /its file is missing/],
  [
    'a huge file as its private key',
    (directory, kid) => writeFileSync(join(directory, `${kid}.jwk`), Buffer.alloc(1_000_000, 'a')),
    /cannot be read: no small file/,
  ],
])('with %s, nothing is signed, the log says why, and callers see no path', async (_, spoil, reason) => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const secret = readFileSync(join(issuer.directory, `${issuer.kid}.jwk`), 'utf8');
  const { d } = JSON.parse(secret) as { d: string };
  await spoil(issuer.directory, issuer.kid);
  const log = recordingLog();
  const keys = new SigningKeys(issuer.directory, log);
  for (const at of [now, now + 1, now + 5000]) {
    expect(await keys.current(at)).toEqual({
      ok: false,
      problem: { code: 'leases_not_set_up', detail: 'The issuer has no usable signing key: see its log.' },
    });
  }
  expect(log.lines).toHaveLength(1);
  expect(String(log.lines[0]?.fields['faults'])).toMatch(reason);
  expect(JSON.stringify(log.lines)).not.toContain(d);
});

it('a directory that is mended is used again within a second', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await setUpIssuer(temporary.path, now);
  const [file, away] = [join(issuer.directory, `${issuer.kid}.jwk`), join(temporary.path, 'away')];
  renameSync(file, away);
  const keys = new SigningKeys(issuer.directory, recordingLog());
  expect(await keys.current(now)).toMatchObject({ ok: false });
  renameSync(away, file);
  expect(await keys.current(now + 1000)).toMatchObject({ ok: true });
  expect(await readPrivateKey(readFileSync(file, 'utf8'))).not.toBeNull();
});
