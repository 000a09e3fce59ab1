import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { latchkey, type Outcome } from '../../../support/process/command-line.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const begin = Date.UTC(2026, 0, 1);
const dayMs = 86_400_000;

afterEach(() => {
  vi.useRealTimers();
});

/** An issuer that was set up, and the findings of the doctor on its keys. */
async function issuerIn(parent: string) {
  vi.useFakeTimers({ now: begin, toFake: ['Date'] });
  const stateDir = join(parent, 'lib', 'state');
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const roots = join(parent, 'offline');
  const run = (...argv: string[]): Promise<Outcome> => latchkey(...argv, '--state-dir', stateDir, '--json');
  const made = await run('lease', 'setup', '--issuer', 'https://licenses.example.com', '--roots', roots);
  const { kid } = JSON.parse(made.out) as { kid: string };
  const directory = join(stateDir, 'signing');
  return {
    stateDir,
    directory,
    roots,
    run,
    kid,
    keyFile: join(directory, `${kid}.jwk`),
    /** Findings that name keys, roots, leases or the signing directory; `level what → advice`. */
    async findings(): Promise<string[]> {
      const { out } = await run('doctor');
      const { findings } = JSON.parse(out) as {
        findings: { level: string; what: string; advice: string | null }[];
      };
      return findings
        .map(({ level, what, advice }) => `${level}: ${what}${advice === null ? '' : ` → ${advice}`}`)
        .filter((line) => /signing|root key|leases|statement|signing/.test(line));
    },
  };
}

// Wine's icacls does not answer, and the doctor then warns.
test.skipIf(process.platform === 'win32')('doctor says until when leases can be signed', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await issuerIn(temporary.path);
  expect(await issuer.findings()).toEqual([
    'ok: leases are signed for https://licenses.example.com; the signing key is valid until 2027-02-05T00:00:00+00:00',
  ]);
});

test.skipIf(process.platform === 'win32')(
  'doctor warns 60 days before the last signing key ends, and fails when it has ended',
  async () => {
    await using temporary = temporaryDirectory();
    const issuer = await issuerIn(temporary.path);
    vi.setSystemTime(begin + 341 * dayMs);
    expect(await issuer.findings()).toEqual([
      expect.stringMatching(
        /^warn: the last signing key ends soon, on 2027-02-05.* lease signing-key rotate --root FILE$/,
      ),
    ]);
    vi.setSystemTime(begin + 400 * dayMs);
    expect(await issuer.findings()).toEqual([
      expect.stringMatching(
        /^fail: no key of the key statement \(version 1\) can sign here: devices get no leases/,
      ),
    ]);
  },
);

test.skipIf(process.platform === 'win32')('doctor finds keys that other users can read', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await issuerIn(temporary.path);
  chmodSync(issuer.directory, 0o750);
  chmodSync(issuer.keyFile, 0o640);
  const findings = await issuer.findings();
  expect(findings).toContain(
    `fail: ${issuer.directory} can be read by other users → chmod 0700 ${issuer.directory}`,
  );
  expect(findings).toContain(
    `fail: ${issuer.keyFile} is accessible to other users → chmod 0600 ${issuer.keyFile}`,
  );
});

test.skipIf(process.getuid?.() !== 0)(
  'doctor finds keys that the user of the daemon cannot read',
  async () => {
    await using temporary = temporaryDirectory();
    const issuer = await issuerIn(temporary.path);
    chownSync(issuer.keyFile, 12_345, 12_345);
    expect(await issuer.findings()).toContain(
      `fail: ${issuer.keyFile} belongs to user 12345, and the daemon runs as user 0 → chown 0 ${issuer.keyFile}`,
    );
  },
);

test.skipIf(process.platform === 'win32')(
  'doctor finds a statement without a usable key, a damaged file, and a key that is in no statement',
  async () => {
    await using temporary = temporaryDirectory();
    const issuer = await issuerIn(temporary.path);
    const statementFile = join(issuer.directory, 'statement.jwt');
    const installed = readFileSync(statementFile);
    await issuer.run('lease', 'signing-key', 'rotate', '--root', join(issuer.roots, 'root-1.jwk'));
    writeFileSync(statementFile, installed);
    expect(await issuer.findings()).toContainEqual(
      expect.stringMatching(/^warn: the signing key \S+ is not in the key statement → delete /),
    );
    const away = join(temporary.path, 'away.jwk');
    renameSync(issuer.keyFile, away);
    expect(await issuer.findings()).toEqual([
      expect.stringMatching(/^fail: no key of the key statement/),
      `warn: the private key of the signing key ${issuer.kid} is not here → bring its file here, or retire the key`,
      expect.stringContaining('is not in the key statement'),
    ]);
    renameSync(away, issuer.keyFile);
    writeFileSync(statementFile, 'damaged');
    expect(await issuer.findings()).toContainEqual(
      expect.stringMatching(
        /^fail: signing directory .* statement.jwt is not valid. The document is not a signed document/,
      ),
    );
    rmSync(statementFile);
    expect(await issuer.findings()).toContainEqual(
      expect.stringMatching(/^warn: leases are not set up, but a setup was begun/),
    );
  },
);

test('doctor finds root keys in the state directory and next to the directory, under any name', async () => {
  await using temporary = temporaryDirectory();
  const issuer = await issuerIn(temporary.path);
  const places = [
    join(issuer.stateDir, 'root-1.jwk'),
    join(issuer.directory, 'backup.jwk'),
    join(issuer.stateDir, '..', 'root-2.jwk'),
    join(issuer.stateDir, '..', 'roots', 'root-2.jwk'),
  ];
  mkdirSync(join(issuer.stateDir, '..', 'roots'));
  for (const path of places) copyFileSync(join(issuer.roots, 'root-2.jwk'), path);
  const found = (await issuer.findings()).filter((line) => line.includes('is a private root key'));
  expect(found).toHaveLength(places.length);
  for (const path of places) expect(found.join('\n')).toContain(`warn: ${path} is a private root key`);
});

test('doctor says nothing about keys where leases are not set up', async () => {
  await using temporary = temporaryDirectory();
  const { out } = await latchkey('doctor', '--state-dir', join(temporary.path, 'state'), '--json');
  expect(out).not.toMatch(/signing|lease/);
});
