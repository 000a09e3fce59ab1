import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  chownSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { ownProgram, latchkey, type Outcome } from '../../../support/process/command-line.ts';
import { canMount, smallDisk } from '../../../support/process/small-disk.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';

const issuer = 'https://licenses.example.com';

afterEach(() => {
  vi.useRealTimers();
});

/** An issuer's files below one directory, and its command line. */
function issuerIn(parent: string) {
  const stateDir = join(parent, 'state');
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const run = (...argv: string[]): Promise<Outcome> => latchkey(...argv, '--state-dir', stateDir);
  return {
    run,
    signingDir: join(stateDir, 'signing'),
    roots: join(parent, 'roots'),
    file: (name: string) => join(parent, name),
    setUp: () => run('lease', 'setup', '--issuer', issuer, '--roots', join(parent, 'roots')),
    async read<Shape>(...argv: string[]): Promise<Shape> {
      const { code, out, err } = await run(...argv, '--json');
      if (code !== 0) throw new Error(`${argv.join(' ')}: ${err}`);
      return JSON.parse(out) as Shape;
    },
  };
}

type Keys = {
  version: number;
  keys: { kid: string; state: string; has_private_key: boolean; not_after: string }[];
};

/** The indented lines after a line of the output. */
function blockIn(out: string, title: string): string {
  const lines = out.slice(out.indexOf(title)).split('\n').slice(1);
  const end = lines.findIndex((line) => !line.startsWith('  ') || line.startsWith('   R'));
  return lines.slice(0, end).join('\n');
}

test('lease setup prints the configuration of issuer and holder, and the public keys for the program', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  const { code, out, err } = await place.run(
    'lease',
    'setup',
    '--issuer',
    `${issuer}/`,
    '--roots',
    place.roots,
  );
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/Move the private keys root-1\.jwk and root-2\.jwk from \S+\n +to two places offline/);
  expect(out).toContain('The public keys root-1.pub.jwk and root-2.pub.jwk stay here');
  const blockAfter = (title: string): string => blockIn(out, title);
  expect(parse(blockAfter('2. In the configuration'))).toEqual({
    listen: { public: { address: '127.0.0.1:8790' } },
  });
  const holder = place.file('holder.yaml');
  writeFileSync(
    holder,
    `state_dir: ${place.file('holder')}\n${blockAfter('3. The configuration').replaceAll(/^ {2}/gm, '')}\n`,
  );
  for (const number of [1, 2]) {
    writeFileSync(
      place.file(`root-${number}.pub.jwk`),
      readFileSync(join(place.roots, `root-${number}.pub.jwk`)),
    );
  }
  expect(await latchkey('config', 'check', '--config', holder)).toMatchObject({ code: 0 });
  const compiled = parse(blockAfter('4. Compile')) as { issuer: string; roots: unknown[] };
  expect(compiled.issuer).toBe(issuer);
  expect(compiled.roots).toEqual(
    [1, 2].map((number) => JSON.parse(readFileSync(join(place.roots, `root-${number}.pub.jwk`), 'utf8'))),
  );
});

test.each([
  'http://licenses.example.com',
  'ftp://licenses.example.com',
  'licenses.example.com',
  'https://user:password@licenses.example.com',
  'https://licenses.example.com/?a=1',
  'https://licenses.example.com/#a',
])('lease setup refuses the issuer %s, and writes nothing', async (url) => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  const { code, err } = await place.run('lease', 'setup', '--issuer', url, '--roots', place.roots);
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringContaining('--issuer must be an https URL') as string,
  });
  expect([existsSync(place.roots), existsSync(place.signingDir)]).toEqual([false, false]);
});

test('lease setup accepts http for this machine', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  for (const url of ['http://127.0.0.1:8790', 'http://localhost:8790/licenses']) {
    await using other = temporaryDirectory();
    const there = issuerIn(other.path);
    expect(await there.read('lease', 'setup', '--issuer', url, '--roots', place.roots)).toMatchObject({
      issuer: url,
    });
  }
});

test('on one machine, the issuer of lease setup listens at the port of --issuer, and the holder at a free one', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  await using occupied = createServer();
  // Fails if another program has the port, which is then just as occupied.
  await once(occupied.listen(8788, '127.0.0.1'), 'listening').catch(() => undefined);
  const { out } = await place.run(
    'lease',
    'setup',
    '--issuer',
    'http://127.0.0.1:8789',
    '--roots',
    place.roots,
  );
  expect(parse(blockIn(out, '2. In the configuration'))).toEqual({
    listen: { public: { address: '127.0.0.1:8789' } },
  });
  const { listen } = parse(blockIn(out, '3. The configuration')) as { listen: { tcp: string } };
  // 8787 is `listen.tcp` of the issuer.
  expect(listen.tcp).toMatch(/^127\.0\.0\.1:879\d$/);
});

test('an issuer whose --issuer is its listen.tcp needs no other port', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  const { out } = await place.run(
    'lease',
    'setup',
    '--issuer',
    'http://localhost:8787',
    '--roots',
    place.roots,
  );
  expect(out).toContain('2. The issuer needs no setting');
  expect(out).not.toContain('public:');
  const { listen } = parse(blockIn(out, '3. The configuration')) as { listen: { tcp: string } };
  expect(listen.tcp).not.toContain('8787');
});

test('lease setup refuses root keys in the state directory, a second run, and the configuration of a holder', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  for (const roots of [
    place.signingDir,
    join(place.signingDir, '..', 'roots'),
    join(place.signingDir, '..'),
  ]) {
    const { code, err } = await place.run('lease', 'setup', '--issuer', issuer, '--roots', roots);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining('root keys are kept offline') as string,
    });
  }
  expect(existsSync(place.signingDir)).toBe(false);
  expect(await place.setUp()).toMatchObject({ code: 0 });
  const second = await place.run(
    'lease',
    'setup',
    '--issuer',
    'https://other.example',
    '--roots',
    place.file('other'),
  );
  expect(second).toMatchObject({ code: 1, out: '' });
  expect(second.err).toContain(`is set up for ${issuer}. Nothing was changed.`);
  expect(existsSync(place.file('other'))).toBe(false);
  const holder = place.file('holder.yaml');
  writeFileSync(holder, `state_dir: ${place.file('holder')}\nleases: { issuer: '${issuer}' }\n`);
  const { code, err } = await latchkey(
    'lease',
    'setup',
    '--issuer',
    issuer,
    '--roots',
    place.file('x'),
    '--config',
    holder,
  );
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('for a holder') as string });
});

test('leases.signing_dir chooses the signing directory', async () => {
  await using temporary = temporaryDirectory();
  const file = join(temporary.path, 'latchkey.yaml');
  writeFileSync(file, 'state_dir: ./state\nleases: { signing_dir: ./shared }\n');
  mkdirSync(join(temporary.path, 'state'));
  const made = await latchkey(
    'lease',
    'setup',
    '--issuer',
    issuer,
    '--roots',
    join(temporary.path, 'roots'),
    '--config',
    file,
  );
  expect(made).toMatchObject({ code: 0 });
  expect(readdirSync(join(temporary.path, 'shared'))).toContain('statement.jwt');
  expect(readdirSync(join(temporary.path, 'state'))).toEqual([]);
});

test.skipIf(process.getuid?.() !== 0)(
  'root gives the files to the owner of the state directory, and does not create that directory',
  async () => {
    await using temporary = temporaryDirectory();
    const missing = await latchkey(
      'lease',
      'setup',
      '--issuer',
      issuer,
      '--roots',
      join(temporary.path, 'roots'),
      '--state-dir',
      join(temporary.path, 'none'),
    );
    expect(missing).toMatchObject({
      code: 1,
      err: expect.stringContaining('start the daemon once') as string,
    });
    const place = issuerIn(temporary.path);
    chownSync(join(place.signingDir, '..'), 12_345, 23_456);
    expect(await place.setUp()).toMatchObject({ code: 0 });
    for (const name of ['', ...readdirSync(place.signingDir)]) {
      expect(statSync(join(place.signingDir, name)).uid).toBe(12_345);
    }
    expect(statSync(join(place.roots, 'root-1.jwk')).uid).toBe(0);
  },
);

test('a signing key is rotated by either root key, also from standard input, and a leaked key is retired', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  await place.setUp();
  const list = () => place.read<Keys>('lease', 'signing-key', 'list');
  const [first] = (await list()).keys;
  const root = join(place.roots, 'root-2.jwk');
  const rotated = await place.run('lease', 'signing-key', 'rotate', '--root', root);
  const { version, keys } = await list();
  expect([version, keys.map(({ kid, state }) => [kid === first?.kid, state])]).toEqual([
    2,
    [
      [false, 'signs'],
      [true, 'listed'],
    ],
  ]);
  const second = keys[0]?.kid ?? '';
  expect(rotated).toMatchObject({ code: 0, err: '' });
  expect(rotated.out).toContain(`${second} signs leases from now on, until `);
  const argv = ['lease', 'signing-key', 'rotate', '--root', '-', '--retire', first?.kid ?? ''];
  const { stdout } = spawnSync(
    process.execPath,
    [...ownProgram.slice(1), ...argv, '--state-dir', join(place.signingDir, '..'), '--json'],
    { input: readFileSync(join(place.roots, 'root-1.jwk')), encoding: 'utf8' },
  );
  const third = JSON.parse(stdout) as { kid: string };
  expect(third).toMatchObject({ issuer, version: 3, removed: [first?.kid] });
  expect((await list()).keys.map(({ kid, state }) => [kid, state])).toEqual([
    [third.kid, 'signs'],
    [second, 'listed'],
  ]);
  expect(readdirSync(place.signingDir)).not.toContain(`${first?.kid}.jwk`);
});

test('a copy of the signing directory is rotated where a root key is, and works back at the issuer', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  await place.setUp();
  const offline = place.file('offline');
  cpSync(place.signingDir, join(offline, 'signing'), { recursive: true });
  const root = join(place.roots, 'root-1.jwk');
  const { code } = await latchkey('lease', 'signing-key', 'rotate', '--root', root, '--state-dir', offline);
  expect(code).toBe(0);
  cpSync(join(offline, 'signing'), place.signingDir, { recursive: true });
  expect(await place.read('lease', 'signing-key', 'list')).toMatchObject({
    version: 2,
    keys: [{ state: 'signs' }, { state: 'listed' }],
  });
});

test('lease signing-key rotate says what is wrong with a root key or a key to retire, and changes nothing', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  const other = issuerIn(place.file('other'));
  await place.setUp();
  await other.setUp();
  const before = readdirSync(place.signingDir);
  const root = join(place.roots, 'root-1.jwk');
  const endless = '/dev/zero';
  for (const [argv, reason] of [
    [[join(place.roots, 'root-1.pub.jwk')], 'has only the public part of the key'],
    [[join(place.signingDir, 'statement.jwt')], 'is not a private P-256 key (JWK)'],
    [[join(other.roots, 'root-1.jwk')], 'no key was made: it needs a root key of this issuer'],
    [[root, '--retire', 'A'.repeat(43)], 'no key was made: the statement does not list the key'],
    [[place.file('missing.jwk')], 'cannot read'],
    ...(existsSync(endless) ? [[[endless], 'cannot read /dev/zero'] as const] : []),
  ] as const) {
    const { code, err } = await place.run('lease', 'signing-key', 'rotate', '--root', ...argv);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(reason) as string });
    expect(err).not.toContain((JSON.parse(readFileSync(root, 'utf8')) as { d: string }).d);
  }
  expect(readdirSync(place.signingDir)).toEqual(before);
});

test('lease signing-key list warns 60 days before the last key ends, and when no key can sign', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1), toFake: ['Date'] });
  await place.setUp();
  const listAfter = async (days: number) => {
    vi.setSystemTime(Date.UTC(2026, 0, 1) + days * 86_400_000);
    return await place.run('lease', 'signing-key', 'list');
  };
  expect((await listAfter(340)).err).toBe('');
  expect((await listAfter(341)).err).toBe(
    'latchkey: the last key ends in 59 days. Make the next one: latchkey lease signing-key rotate --root FILE\n',
  );
  const ended = await listAfter(400);
  expect(ended.err).toBe(
    'latchkey: no key can sign here. Make one: latchkey lease signing-key rotate --root FILE\n',
  );
  expect(ended.out).toContain('ended');
  await place.run('lease', 'signing-key', 'rotate', '--root', join(place.roots, 'root-1.jwk'));
  expect((await listAfter(400)).err).toBe('');
});

test('the commands for keys say that leases are not set up', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  const root = place.file('root.jwk');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(root, JSON.stringify(privateKey.export({ format: 'jwk' })));
  for (const argv of [
    ['lease', 'signing-key', 'list'],
    ['lease', 'signing-key', 'rotate', '--root', root],
  ]) {
    const { code, err } = await place.run(...argv);
    expect([code, err]).toEqual([1, expect.stringMatching(/not set up/)]);
  }
});

test.skipIf(!canMount)(
  'lease setup on a full disk leaves nothing that counts as set up, and can be repeated',
  async () => {
    await using disk = smallDisk(512);
    await using temporary = temporaryDirectory();
    // Setting up needs 16 KiB: four files of one page.
    for (const leftKib of [0, 4, 8, 12]) {
      const stateDir = join(disk.path, `state-${leftKib}`);
      mkdirSync(stateDir);
      const roots = join(temporary.path, `roots-${leftKib}`);
      const run = (...argv: string[]) => latchkey(...argv, '--state-dir', stateDir);
      const setUp = () => run('lease', 'setup', '--issuer', issuer, '--roots', roots);
      disk.fill(leftKib);
      const { code, err } = await setUp();
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringContaining('leases were not set up: no space left on device') as string,
      });
      expect(await run('lease', 'signing-key', 'list')).toMatchObject({ code: 1 });
      disk.clear();
      expect(await setUp()).toMatchObject({ code: 0 });
      const files = readdirSync(join(stateDir, 'signing'));
      expect(files.filter((name) => name.endsWith('.new'))).toEqual([]);
      expect((await run('lease', 'signing-key', 'list')).out).toContain('signs');
    }
  },
);
