import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { viewerFiles, viewerPath } from '../../src/http/viewer-file.ts';
import { buildPage } from '../../src/packaging/console-page.ts';
import { servedConsole } from '../features/console/console-app.ts';
import { runProcess, type Outcome } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { buildExecutable, isBuildable } from '../support/process/executable.ts';
import { startPlainUpstream } from '../support/harness/plain-upstream.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Runs programs for arm64. */
const emulator = ['/usr/bin/qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'] as const;
const isEmulated = existsSync(emulator[0]) && existsSync(`${emulator[2]}/lib/libatomic.so.1`);
const withoutEmulator = isEmulated ? '' : ' (skipped: qemu-user-static or the arm64 libraries are missing)';

const [productKey, secret, licenseKey] = ['RGsF', 'the-product-secret', 'WTKP4-66NL5-HMKQW-GFSCZ'];

/** Whether this user can hide /proc from a process. */
const hasNamespaces =
  spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', '/proc']).status === 0;
const withoutNamespaces = hasNamespaces ? '' : ' (skipped: unshare --mount is not permitted)';

describe.skipIf(!isBuildable)(
  'the single executable runs without Node and npm (built and tested on Linux)',
  () => {
    let built = '';
    beforeAll(() => {
      built = buildExecutable();
    });

    /** A clean machine: no PATH, an empty home, and the executable away from the sources. */
    function machine(home: string): {
      program: string;
      run: (...argv: string[]) => Promise<Outcome>;
    } {
      const program = join(home, 'latchkey');
      copyFileSync(built, program);
      const run = (...argv: string[]): Promise<Outcome> =>
        runProcess(argv, { HOME: home, PATH: '' }, [program]);
      return { program, run };
    }

    test('the executable runs the demo', async () => {
      await using home = temporaryDirectory();
      const { code, out, err } = await machine(home.path).run('demo');
      expect([code, err]).toEqual([0, '']);
      expect(out).toContain('Every step succeeded.');
    });

    test('the executable runs an agent that keeps a use through kill -9, and the commands that control it', async () => {
      await using home = temporaryDirectory();
      const { program, run } = machine(home.path);
      await using store = await startPlainUpstream({
        apiKey: 'api-key',
        products: [{ productKey, secret }],
        licenses: [{ licenseKey, productKey, buyerEmail: 'buyer@example.com' }],
      });
      const configuration = {
        listen: { tcp: '127.0.0.1:0' },
        upstream: { base_url: store.url },
        products: [{ key: productKey, secret }],
      };
      const start = (): Promise<DaemonProcess> =>
        startDaemonProcess(home.path, configuration, { PATH: '' }, [program]);
      const config = join(home.path, 'config.yaml');
      const ask = async (...argv: string[]): Promise<unknown> => {
        const { code, out, err } = await run(...argv, '--json', '--config', config);
        expect([code, err], argv.join(' ')).toEqual([0, '']);
        return JSON.parse(out);
      };

      await using killed = await start();
      expect(await ask('verify', licenseKey)).toMatchObject({ uses: 0, enabled: true });
      await store.stop();
      expect(await ask('use', licenseKey)).toMatchObject({ uses: 1 });
      await killed.kill();

      await using agent = await start();
      expect(await ask('verify', licenseKey)).toMatchObject({ uses: 1 });
      const version = (await run('--version')).out.trim();
      const status = (await ask('status')) as { outbox: Record<string, number> };
      expect(status).toMatchObject({ role: 'agent', version });
      // The use is waiting, or was being sent when the process was killed.
      const { pending = 0, in_flight: inFlight = 0, uncertain = 0 } = status.outbox;
      expect(pending + inFlight + uncertain).toBe(1);
      await ask('backup', join(home.path, 'copy.db'));
      const description = await fetch(new URL('/openapi.json', agent.tcp));
      expect(await description.json()).toMatchObject({ info: { version } });
      for (const name of viewerFiles) {
        const served = await fetch(new URL(`/docs/${name}`, agent.tcp));
        expect(Buffer.from(await served.arrayBuffer()).equals(readFileSync(viewerPath(name)))).toBe(true);
      }
      expect(await servedConsole(agent.tcp)).toEqual((await buildPage('console')).files);
      agent.signal('SIGTERM');
      expect(await agent.ended).toBe(0);
      expect(agent.complaints).toBe('');
    });

    test.skipIf(!hasNamespaces)(
      `the executable runs on a system without /proc, called by its path or found in PATH${withoutNamespaces}`,
      async () => {
        await using home = temporaryDirectory();
        const { program } = machine(home.path);
        const run = (name: string, ...argv: string[]): Promise<Outcome> => {
          const script = 'mount -t tmpfs tmpfs /proc && cd "$HOME" && PATH="$HOME" exec "$@"';
          const command = ['unshare', '--mount', 'sh', '-c', script, 'sh', name] as const;
          return runProcess(argv, { HOME: home.path }, command);
        };
        for (const name of ['latchkey', './latchkey', program]) {
          const unit = await run(name, 'service', 'print');
          expect([unit.code, unit.err]).toEqual([0, '']);
          expect(unit.out).toContain(`\nExecStart=${program} serve\n`);
        }
        const { code, out, err } = await run('latchkey', 'demo');
        expect([code, err]).toEqual([0, '']);
        expect(out).toContain('Every step succeeded.');
      },
    );

    test('the service unit of the executable starts that executable', async () => {
      await using home = temporaryDirectory();
      const { program, run } = machine(home.path);
      expect((await run('service', 'print')).out).toContain(`\nExecStart=${program} serve\n`);
    });
  },
);

describe.skipIf(!isBuildable || process.arch !== 'x64')('the executable for arm64, built on x64', () => {
  let built = '';
  beforeAll(() => {
    built = buildExecutable('arm64');
  });

  test('the executable is a program for arm64', () => {
    const header = readFileSync(built).subarray(0, 20);
    // EM_AARCH64 in the header of an ELF file.
    expect([header.subarray(1, 4).toString(), header.readUInt16LE(18)]).toEqual(['ELF', 183]);
  });

  test.skipIf(!isEmulated)(`the executable runs the demo on arm64${withoutEmulator}`, async () => {
    await using home = temporaryDirectory();
    const { code, out, err } = await runProcess(['demo'], { HOME: home.path }, [...emulator, built]);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('Every step succeeded.');
  });
});
