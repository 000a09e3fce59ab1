import {
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
import { latchkey, type Outcome } from '../support/process/command-line.ts';
import { canMount, smallDisk } from '../support/process/small-disk.ts';
import { temporaryDirectory } from '../support/temporary.ts';

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

/** Signs and installs a draft. */
async function install(
  place: ReturnType<typeof issuerIn>,
  draft: string,
  root = 'root-1.jwk',
): Promise<Outcome> {
  const signed = `${draft}.jwt`;
  const outcome = await latchkey(
    'lease',
    'statement',
    'sign',
    draft,
    '--root',
    join(place.roots, root),
    '--output',
    signed,
  );
  expect(outcome).toMatchObject({ code: 0, err: '' });
  return await place.run('lease', 'statement', 'install', signed);
}

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

test('a signing key is added, signed elsewhere and installed, and the earlier key is retired', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  const { kid: first } = await place.read<{ kid: string }>(
    'lease',
    'setup',
    '--issuer',
    issuer,
    '--roots',
    place.roots,
  );
  const draft = place.file('statement-2.json');
  const added = await place.run('signing-key', 'add', '--output', draft);
  expect(added.out).toContain(
    `lease statement sign ${draft} --root root-1.jwk --output ${place.file('statement-2.jwt')}`,
  );
  const listed = await place.read<Keys>('signing-key', 'list');
  expect(listed.keys.map(({ kid, state }) => [kid === first, state])).toEqual([
    [true, 'signs'],
    [false, 'not_listed'],
  ]);
  const second = listed.keys[1]?.kid ?? '';
  expect(added.out).toContain(second);
  expect((await install(place, draft, 'root-2.jwk')).out).toContain(`${second} signs leases from now on`);
  const retired = place.file('statement-3.json');
  expect(await place.run('signing-key', 'retire', first, '--output', retired)).toMatchObject({ code: 0 });
  expect((await install(place, retired)).out).toContain(`Deleted the private key ${first}.`);
  expect(await place.read('signing-key', 'list')).toMatchObject({
    version: 3,
    total: 1,
    keys: [{ kid: second, state: 'signs', has_private_key: true }],
  });
  expect(readdirSync(place.signingDir)).not.toContain(`${first}.jwk`);
  expect(await place.read('lease', 'statement', 'show')).toMatchObject({
    issuer,
    version: 3,
    is_signed: true,
  });
});

test('the draft of signing-key add gets a name from its version, and an existing file is kept', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  await place.setUp();
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(temporary.path);
  writeFileSync(place.file('taken.json'), 'mine');
  expect((await place.run('signing-key', 'add')).out).toMatch(/The draft is \.[/\\]statement-2\.json\./);
  expect(existsSync(place.file('statement-2.json'))).toBe(true);
  const before = readdirSync(place.signingDir);
  const { code, err } = await place.run('signing-key', 'add', '--output', place.file('taken.json'));
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('cannot create') as string });
  expect(readdirSync(place.signingDir)).toEqual(before);
  expect(readFileSync(place.file('taken.json'), 'utf8')).toBe('mine');
  cwd.mockRestore();
  const none = await place.run('signing-key', 'retire', 'A'.repeat(43), '--output', place.file('none.json'));
  expect(none).toMatchObject({ code: 1, err: expect.stringContaining('does not list the key') as string });
  expect(existsSync(place.file('none.json'))).toBe(false);
});

test('lease statement sign prints the statement, and says what is wrong with a draft or a root key', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  await place.setUp();
  const draft = place.file('draft.json');
  await place.run('signing-key', 'add', '--output', draft);
  const sign = (file: string, root: string) => latchkey('lease', 'statement', 'sign', file, '--root', root);
  const root = join(place.roots, 'root-1.jwk');
  const { out } = await sign(draft, root);
  expect(out.trim().split('.')).toHaveLength(3);
  writeFileSync(place.file('s.jwt'), out);
  expect(await place.read('lease', 'statement', 'show', place.file('s.jwt'))).toMatchObject({
    version: 2,
    is_signed: true,
  });
  const shown = await latchkey(
    'lease',
    'statement',
    'show',
    place.file('s.jwt'),
    '--root',
    join(place.roots, 'root-2.pub.jwk'),
  );
  expect(shown).toMatchObject({
    code: 1,
    err: expect.stringContaining('None of the known root keys') as string,
  });
  const text = readFileSync(draft, 'utf8');
  writeFileSync(place.file('wrong.json'), text.replace('"version": 2', '"version": "two"'));
  const endless = '/dev/zero';
  for (const [file, key, reason] of [
    [draft, join(place.roots, 'root-1.pub.jwk'), 'has only the public part of the key'],
    [draft, draft, 'is not a private P-256 key (JWK)'],
    [place.file('wrong.json'), root, 'was not signed: version: Invalid input: expected number'],
    [place.file('s.jwt'), root, 'was not signed: it is not JSON'],
    [place.file('missing.json'), root, 'cannot read'],
    ...(existsSync(endless) ? [[endless, root, 'cannot read /dev/zero'] as const] : []),
  ] as const) {
    const { code, err } = await sign(file, key);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(reason) as string });
    expect(err).not.toContain((JSON.parse(readFileSync(root, 'utf8')) as { d: string }).d);
  }
});

test('lease statement install refuses what does not fit, and the installed statement stays', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  const other = issuerIn(place.file('other'));
  await place.setUp();
  await other.setUp();
  const before = readFileSync(join(place.signingDir, 'statement.jwt'), 'utf8');
  const draft = place.file('draft.json');
  await place.run('signing-key', 'add', '--output', draft);
  const refused = async (file: string, reason: string): Promise<void> => {
    const { code, err } = await place.run('lease', 'statement', 'install', file);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(reason) as string });
    expect(readFileSync(join(place.signingDir, 'statement.jwt'), 'utf8')).toBe(before);
  };
  await refused(join(place.signingDir, 'statement.jwt'), 'version 1 is installed: it must be higher');
  await refused(join(other.signingDir, 'statement.jwt'), 'None of the known root keys has signed');
  await refused(draft, 'The document is not a signed document');
  const foreign = await latchkey(
    'lease',
    'statement',
    'sign',
    draft,
    '--root',
    join(other.roots, 'root-1.jwk'),
  );
  writeFileSync(place.file('foreign.jwt'), foreign.out);
  await refused(place.file('foreign.jwt'), 'None of the known root keys has signed');
});

test('signing-key list warns 60 days before the last key ends, and when no key can sign', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1), toFake: ['Date'] });
  await place.setUp();
  const listAfter = async (days: number) => {
    vi.setSystemTime(Date.UTC(2026, 0, 1) + days * 86_400_000);
    return await place.run('signing-key', 'list');
  };
  expect((await listAfter(340)).err).toBe('');
  expect((await listAfter(341)).err).toBe(
    'latchkey: the last key ends in 59 days. Add the next key: latchkey signing-key add\n',
  );
  const ended = await listAfter(400);
  expect(ended.err).toBe('latchkey: no key can sign here. Add a key: latchkey signing-key add\n');
  expect(ended.out).toContain('ended');
  const next = place.file('next.json');
  await place.run('signing-key', 'add', '--output', next);
  await install(place, next);
  expect((await listAfter(400)).err).toBe('');
});

test('the commands for keys say that leases are not set up', async () => {
  await using temporary = temporaryDirectory();
  const place = issuerIn(temporary.path);
  writeFileSync(place.file('s.jwt'), 'a.b.c');
  for (const argv of [
    ['signing-key', 'list'],
    ['signing-key', 'add'],
    ['signing-key', 'retire', 'A'.repeat(43)],
    ['lease', 'statement', 'show'],
    ['lease', 'statement', 'install', place.file('s.jwt')],
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
      expect(await run('lease', 'statement', 'show')).toMatchObject({ code: 1 });
      disk.clear();
      expect(await setUp()).toMatchObject({ code: 0 });
      const files = readdirSync(join(stateDir, 'signing'));
      expect(files.filter((name) => name.endsWith('.new'))).toEqual([]);
      expect((await run('signing-key', 'list')).out).toContain('signs');
    }
  },
);
