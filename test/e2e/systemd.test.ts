import { appendFileSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { boot, missingForBoot, type BootedRoot } from '../support/process/booted-root.ts';
import { makeCleanRoot, type CleanRoot, type Ran } from '../support/process/clean-root.ts';
import { buildDebianPackage, missingForPackage } from '../support/process/debian-package.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const missing = missingForPackage ?? missingForBoot;
const examples = join(import.meta.dirname, '../../examples');

const told = missing === null ? 'tried under systemd' : `skipped: there is no ${missing} here`;
describe.skipIf(missing !== null)(`the service (${told})`, () => {
  const packages = temporaryDirectory();
  let root: CleanRoot;
  let booted: BootedRoot | string;
  let configuration: string;

  beforeAll(async () => {
    root = makeCleanRoot();
    const files = ['0.1.0', '0.1.1'].map((version) => buildDebianPackage(version, packages.path));
    for (const file of files) copyFileSync(file, join(root.path, 'root', basename(file)));
    const needed = ['systemd', `/root/${basename(files[0] ?? '')}`];
    done(await root.run('apt-get', '-y', '-q', '--no-install-recommends', 'install', ...needed));
    configuration = join(root.path, 'etc/latchkey/config.yaml');
    booted = await boot(root);
  }, 400_000);
  afterAll(async () => {
    if (typeof booted === 'object') await booted[Symbol.asyncDispose]();
    await root?.[Symbol.asyncDispose]();
    await packages[Symbol.asyncDispose]();
  });
  beforeEach(({ skip }) => {
    if (typeof booted === 'string') skip(`systemd does not boot here: ${booted}`);
  });

  const run = async (...command: string[]): Promise<Ran> => {
    if (typeof booted !== 'object') throw new Error('nothing was booted');
    return await booted.run(...command);
  };
  const systemctl = (...argv: string[]): Promise<Ran> => run('systemctl', ...argv);
  const apt = async (...argv: string[]): Promise<string> => done(await run('apt-get', '-y', '-q', ...argv));
  const show = async (property: string): Promise<string> =>
    done(await systemctl('show', '--value', '-p', property, 'latchkey')).trim();
  const status = async (): Promise<unknown> => JSON.parse(done(await run('latchkey', 'status', '--json')));

  test('the package does not start the service, and systemctl start returns when the service is ready', async () => {
    expect(await show('ActiveState')).toBe('inactive');
    done(await systemctl('enable', '--now', 'latchkey'));
    expect(await status()).toMatchObject({ role: 'authority' });
    expect(done(await run('stat', '-c', '%U', `/proc/${await show('MainPID')}`)).trim()).toBe('latchkey');
  });

  test('systemctl reload applies a changed configuration', async () => {
    appendFileSync(configuration, 'limits:\n  rate: 77\n');
    done(await systemctl('reload', 'latchkey'));
    await expect.poll(() => log()).toContain('"changed":["limits.rate"]');
    expect(await show('NRestarts')).toBe('0');
  });

  test('systemctl reload reports an invalid configuration and keeps the previous configuration', async () => {
    const before = readFileSync(configuration, 'utf8');
    appendFileSync(configuration, '  failed_rate: many\n');
    expect((await systemctl('reload', 'latchkey')).code).toBe(1);
    expect(await log()).toContain('limits.failed_rate');
    expect(await status()).toMatchObject({ role: 'authority' });
    writeFileSync(configuration, before);
    done(await systemctl('reload', 'latchkey'));
  });

  test('systemd restarts the service after a kill', async () => {
    done(await systemctl('kill', '--kill-who=main', '--signal=KILL', 'latchkey'));
    await expect.poll(() => show('NRestarts')).toBe('1');
    await expect.poll(() => show('ActiveState')).toBe('active');
    expect(await status()).toMatchObject({ role: 'authority' });
  });

  test('systemd does not restart the service with an invalid configuration', async () => {
    const before = readFileSync(configuration, 'utf8');
    appendFileSync(configuration, '  failed_rate: many\n');
    expect((await systemctl('restart', 'latchkey')).code).toBe(1);
    expect([await show('ActiveState'), await show('ExecMainStatus')]).toEqual(['failed', '78']);
    writeFileSync(configuration, before);
    done(await systemctl('start', 'latchkey'));
  });

  test('the units of the guide back up the service', async () => {
    const program = join(root.path, 'usr/local/bin/latchkey-backup');
    copyFileSync(join(examples, 'backup/latchkey-backup'), program);
    for (const unit of ['latchkey-backup.service', 'latchkey-backup.timer']) {
      copyFileSync(join(examples, 'backup', unit), join(root.path, 'etc/systemd/system', unit));
    }
    done(await run('chmod', '0755', '/usr/local/bin/latchkey-backup'));
    done(await systemctl('daemon-reload'));
    done(await systemctl('enable', '--now', 'latchkey-backup.timer'));
    done(await systemctl('start', 'latchkey-backup'));
    expect(done(await run('ls', '-l', '/var/lib/latchkey-backup'))).toMatch(
      /^-rw------- 1 latchkey latchkey .* latchkey-\d+T\d+Z\.db$/m,
    );
  });

  test('an upgrade of the package restarts the service, its removal stops it, and a stopped service stays stopped', async () => {
    const before = await show('MainPID');
    expect(await apt('install', '/root/latchkey_0.1.1_amd64.deb')).not.toContain('systemctl start');
    expect([(await show('MainPID')) === before, await show('ActiveState')]).toEqual([false, 'active']);
    expect(await status()).toMatchObject({ role: 'authority' });
    await apt('remove', 'latchkey');
    expect(await run('systemctl', 'is-active', 'latchkey')).toMatchObject({ said: 'inactive\n' });
    expect(await log()).toMatch(/"signal":"SIGTERM"[^]*"msg":"stopped"/);
    const again = await apt('install', '/root/latchkey_0.1.1_amd64.deb');
    expect(again).toContain('Latchkey is enabled, but not running: systemctl start latchkey');
  });

  async function log(): Promise<string> {
    return done(await run('journalctl', '--no-pager', '-o', 'cat', '-u', 'latchkey'));
  }
});

function done({ code, said }: Ran): string {
  expect(code, said).toBe(0);
  return said;
}
