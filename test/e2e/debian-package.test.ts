import { spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeCleanRoot, type CleanRoot, type Ran } from '../support/process/clean-root.ts';
import type { DaemonProcess } from '../support/process/daemon-process.ts';
import { buildDebianPackage, missingForPackage } from '../support/process/debian-package.ts';
import { hasProgram } from '../support/process/installed.ts';
import { startPlainUpstream, type PlainUpstream } from '../support/harness/plain-upstream.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const [productKey, secret, licenseKey] = ['RGsF', 'the-product-secret', 'WTKP4-66NL5-HMKQW-GFSCZ'];
const state = '/var/lib/latchkey';

const told =
  missingForPackage === null ? 'tried in a clean root' : `skipped: there is no ${missingForPackage} here`;
describe.skipIf(missingForPackage !== null)(`the Debian package (${told})`, () => {
  const packages = temporaryDirectory();
  let files: readonly string[] = [];
  let root: CleanRoot;
  let store: PlainUpstream;

  beforeAll(async () => {
    files = ['0.1.0', '0.1.1'].map((version) => buildDebianPackage(version, packages.path));
    root = makeCleanRoot();
    for (const file of files) copyFileSync(file, join(root.path, 'root', basename(file)));
    store = await startPlainUpstream({
      apiKey: 'api-key',
      products: [{ productKey, secret }],
      licenses: [{ licenseKey, productKey, buyerEmail: 'buyer@example.com' }],
    });
  }, 400_000);
  afterAll(async () => {
    await store?.stop();
    await root?.[Symbol.asyncDispose]();
    await packages[Symbol.asyncDispose]();
  });

  const at = (path: string): string => join(root.path, path);
  const apt = async (...argv: string[]): Promise<string> =>
    done(await root.run('apt-get', '-y', '-q', ...argv));
  const install = (index: number): Promise<string> => apt('install', `/root/${basename(files[index] ?? '')}`);
  const latchkey = (...argv: string[]): Promise<Ran> => root.run('latchkey', ...argv);
  const json = async (...argv: string[]): Promise<unknown> =>
    JSON.parse(done(await latchkey(...argv, '--json')));

  /** Starts the program as systemd would by its unit, but on a free port. */
  async function start(): Promise<DaemonProcess> {
    const unit = new Map(
      readFileSync(at('lib/systemd/system/latchkey.service'), 'utf8')
        .split('\n')
        .map((line) => line.split(/=(.*)/, 2) as [string, string]),
    );
    const [user = '', group = ''] = [unit.get('User'), unit.get('Group')];
    done(await root.run('install', '-d', '-o', user, '-g', group, `/run/${unit.get('RuntimeDirectory')}`));
    const environment = [
      `STATE_DIRECTORY=/var/lib/${unit.get('StateDirectory')}`,
      `RUNTIME_DIRECTORY=/run/${unit.get('RuntimeDirectory')}`,
      ...(unit.get('Environment') ?? '').split(' '),
      'LATCHKEY_LISTEN__TCP=127.0.0.1:0',
    ];
    const masked = ['sh', '-c', `umask ${unit.get('UMask')}; exec "$@"`, 'sh'];
    const asUser = ['setpriv', '--reuid', user, '--regid', group, '--clear-groups'];
    const command = (unit.get('ExecStart') ?? '').split(' ');
    return await root.serve(...masked, ...asUser, 'env', '-i', ...environment, ...command);
  }

  async function becomeAgent(): Promise<void> {
    const addition = `upstream:\n  base_url: ${store.url}\nproducts:\n  - key: ${productKey}\n    secret_file: rgsf.secret\n`;
    appendFileSync(at('etc/latchkey/config.yaml'), addition);
    writeFileSync(at('etc/latchkey/rgsf.secret'), secret, { mode: 0o640 });
    done(await root.run('chgrp', 'latchkey', '/etc/latchkey/rgsf.secret'));
  }

  test('apt installs the Debian package, prints the next steps, and protects the configuration from other users', async () => {
    const said = await install(0);
    expect(said).toContain('Latchkey is installed, but not started.');
    expect(said).toContain('systemctl enable --now latchkey');
    const asked = await latchkey('status');
    expect(asked).toMatchObject({
      code: 69,
      said: expect.stringContaining('Start it: systemctl start latchkey') as string,
    });
    const [, settings = ''] =
      /settings: (\S+)/.exec(readFileSync(at('etc/latchkey/config.yaml'), 'utf8')) ?? [];
    expect(readFileSync(at(settings), 'utf8')).toContain('## state_dir');
    const documents = at('usr/share/doc/latchkey');
    const guide = readFileSync(join(documents, 'examples/guides/install.md'), 'utf8');
    const named = guide.match(/(?<=`)src\/[\w/]+\.md/g) ?? [];
    expect(named).toContain('src/http/PROBLEMS.md');
    expect(named.filter((book) => !existsSync(join(documents, book)))).toEqual([]);
    const read = (path: string): string => gunzipSync(readFileSync(at(`usr/share/${path}`))).toString();
    expect(read('man/man1/latchkey.1.gz')).toMatch(/^\.TH LATCHKEY 1 /m);
    expect(read('doc/latchkey/third-party.gz')).toMatch(/^--- Node\.js v/);
    expect(read('doc/latchkey/changelog.gz')).toMatch(/^latchkey \(0\.1\.0\) stable; /);
    expect(readFileSync(join(documents, 'copyright'), 'utf8')).toContain(' Permission is hereby granted');
    for (const path of [
      'bash-completion/completions/latchkey',
      'zsh/vendor-completions/_latchkey',
      'fish/vendor_completions.d/latchkey.fish',
    ]) {
      expect([path, readFileSync(at(`usr/share/${path}`), 'utf8')]).toEqual([
        path,
        expect.stringContaining('latchkey completion next'),
      ]);
    }
    const owned = await root.run(
      'stat',
      '-c',
      '%A %U %G',
      '/etc/latchkey',
      '/etc/latchkey/config.yaml',
      state,
    );
    expect(owned.said.trim().split('\n')).toEqual([
      'drwxr-x--- root latchkey',
      '-rw-r----- root latchkey',
      'drwx------ latchkey latchkey',
    ]);
    const peeked = await root.run(
      'setpriv',
      '--reuid',
      'nobody',
      '--clear-groups',
      'cat',
      '/etc/latchkey/config.yaml',
    );
    expect(peeked).toMatchObject({ code: 1, said: expect.stringContaining('Permission denied') as string });
  });

  test.skipIf(!hasProgram('systemd-analyze'))(
    'systemd accepts the unit of the Debian package (skipped without systemd)',
    () => {
      const unit = readFileSync(at('lib/systemd/system/latchkey.service'), 'utf8');
      // Uses the targets of this machine, because the clean root has none.
      const file = join(packages.path, 'latchkey.service');
      writeFileSync(file, unit.replaceAll('=/usr/bin/', `=${root.path}/usr/bin/`));
      const looked = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
      expect([looked.stderr, looked.status]).toEqual(['', 0]);
    },
  );

  test('the installed service starts without a configuration, and root can query it', async () => {
    await using daemon = await start();
    expect(await json('status')).toMatchObject({ role: 'authority' });
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toBe(0);
  });

  test('the installed service becomes the configured agent, and keeps a use that it cannot send', async () => {
    await becomeAgent();
    await using daemon = await start();
    expect(await json('verify', licenseKey)).toMatchObject({ uses: 0 });
    await store.stop();
    expect(await json('use', licenseKey)).toMatchObject({ uses: 1 });
    // The use is in flight until the connection to the stopped store fails.
    await expect
      .poll(() => json('status'), { timeout: 30_000 })
      .toMatchObject({ role: 'agent', outbox: { pending: 1 } });
    expect((await latchkey('doctor')).said).toContain('rgsf.secret can be read only by root and the service');
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toBe(0);
  });

  test('an upgrade of the Debian package keeps its state and its configuration', async () => {
    const before = readFileSync(at('etc/latchkey/config.yaml'), 'utf8');
    await install(1);
    expect(done(await root.run('dpkg-query', '-W', '-f', '${Version}', 'latchkey'))).toBe('0.1.1');
    expect(readFileSync(at('etc/latchkey/config.yaml'), 'utf8')).toBe(before);
    expect(await json('state', 'show')).toMatchObject({ role: 'agent', unfinished: { pending: 1 } });
  });

  test('removing the Debian package keeps state and configuration, and purging it keeps unsent changes', async () => {
    const said = await apt('remove', 'latchkey');
    expect(said).toContain('changes that the upstream has not accepted: 1 pending');
    expect(existsSync(at('usr/bin/latchkey'))).toBe(false);
    expect(existsSync(at('etc/latchkey/config.yaml'))).toBe(true);
    expect(existsSync(at(`${state}/latchkey.db`))).toBe(true);
    const purged = await apt('purge', 'latchkey');
    expect(purged).toContain(`the state directory ${state} is kept`);
    expect(purged).toContain('changes that the upstream has not accepted: 1 pending');
    expect(existsSync(at(`${state}/latchkey.db`))).toBe(true);
    expect(existsSync(at('etc/latchkey/config.yaml'))).toBe(false);
    expect(existsSync(at('etc/latchkey/rgsf.secret'))).toBe(true);
  });

  test('a reinstalled Debian package sends the waiting changes, and purging it afterwards leaves nothing', async () => {
    await install(1);
    await becomeAgent();
    await store.start();
    {
      await using daemon = await start();
      await expect.poll(() => json('status')).toMatchObject({ outbox: { pending: 0 } });
      daemon.signal('SIGTERM');
      expect(await daemon.ended).toBe(0);
    }
    expect(store.countsOf(licenseKey).net).toBe(1);
    await apt('purge', 'latchkey');
    for (const left of [state, '/etc/latchkey', '/var/lib/misc/latchkey.removed']) {
      expect(existsSync(at(left)), left).toBe(false);
    }
  });

  test('purging the Debian package keeps state that was written after the removal', async () => {
    await install(1);
    await apt('remove', 'latchkey');
    const file = at(`${state}/latchkey.db`);
    writeFileSync(file, '');
    const purged = await apt('purge', 'latchkey');
    expect(purged).toContain(`the state directory ${state} is kept`);
    expect(purged).toContain(`${state} was written to after latchkey was removed.`);
    expect(existsSync(file)).toBe(true);
  });

  test.skipIf(!hasProgram('lintian'))(
    'lintian finds no error in the Debian package (skipped without lintian)',
    async () => {
      const [file = ''] = files;
      const looked = spawnSync('lintian', ['--allow-root', '--fail-on', 'error,warning', file], {
        encoding: 'utf8',
      });
      expect([looked.stdout, looked.status]).toEqual(['', 0]);
    },
  );
});

function done({ code, said }: Ran): string {
  expect(code, said).toBe(0);
  return said;
}
