import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { conclude, desktopApp } from '../../support/reference/existing-programs.ts';
import { runProcess } from '../../support/process/command-line.ts';
import { startDaemonProcess } from '../../support/process/daemon-process.ts';
import { startPlainUpstream } from '../../support/harness/plain-upstream.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { longPatienceMs, patienceMs } from '../../support/patience.ts';

/*
 * Tests the three ways of the guide's section "You already have software" as they are written
 * there.
 */

const root = fileURLToPath(new URL('../../..', import.meta.url));
const guide = readFileSync(join(root, 'examples/guides/desktop.md'), 'utf8');
const run = promisify(execFile);
const licenseKey = 'AAAAA-BBBBB-CCCCC-DDDDD';
const secret = 'the-product-secret';

/** The code block under a heading of the section. */
function blockOf(heading: string, language: string): string {
  const [, text = ''] = guide.split(`\n### ${heading}\n`);
  const block = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(
    text.split('\n## ', 1)[0] ?? '',
  )?.[1];
  if (block === undefined) throw new Error(`there is no block in ${language} under ${heading}`);
  return block;
}

function startStore(): ReturnType<typeof startPlainUpstream> {
  return startPlainUpstream({
    apiKey: 'api-key',
    products: [{ productKey: 'RGsF', secret }],
    licenses: [{ licenseKey, productKey: 'RGsF', buyerEmail: 'buyer@example.com' }],
  });
}

test('a program with a configurable base URL calls the agent', async () => {
  await using directory = temporaryDirectory();
  await using store = await startStore();
  await using agent = await startDaemonProcess(directory.path, {
    listen: { tcp: '127.0.0.1:0', dialect: 'payhip', unknown: 'reset' },
    upstream: { base_url: store.url },
    products: [{ key: 'RGsF', secret }],
  });
  const activation = join(directory.path, 'activation');
  const settings = { api: agent.tcp, secret, apiKey: 'api-key', productLink: 'RGsF', activation };
  expect(await conclude([...(await desktopApp.build(directory.path)), 'check', licenseKey], settings)).toBe(
    'VALID',
  );
});

/** Whether this machine allows a network namespace and a private hosts file. */
function canMapHosts(): boolean {
  const script = 'ip link set lo up && mount --bind /dev/null /etc/hosts';
  return (
    spawnSync('unshare', ['--user', '--map-root-user', '--net', '--mount', 'sh', '-c', script]).status === 0
  );
}

interface Mapped {
  readonly concluded: readonly string[];
  readonly status: { readonly upstream: { readonly last_error: string | null } };
  readonly doctor: string;
}

/** Runs the programs where the store's name resolves to the agent, configured as the guide says. */
async function playMapped(directory: string, configuration: string): Promise<Mapped> {
  const make = (out: string): ReturnType<typeof runProcess> =>
    runProcess(['certificate', 'make', '--host', 'api.example.com', '--out', join(directory, out)]);
  for (const out of ['tls', 'store-tls']) expect(await make(out)).toMatchObject({ code: 0 });
  const store = {
    state_dir: './store',
    listen: {
      tcp: '127.0.0.2:443',
      tls: { cert_file: './store-tls/cert.pem', key_file: './store-tls/key.pem' },
      allowed_hosts: ['api.example.com'],
      dialect: 'payhip',
    },
  };
  writeFileSync(join(directory, 'store.yaml'), JSON.stringify(store), { mode: 0o600 });
  writeFileSync(join(directory, 'rgsf.secret'), secret, { mode: 0o600 });
  writeFileSync(join(directory, 'latchkey.yaml'), configuration, { mode: 0o600 });
  writeFileSync(join(directory, 'hosts'), blockOf("The store's host is compiled in", 'text'));
  const script = 'ip link set lo up && mount --bind hosts /etc/hosts && exec "$0" "$1"';
  const player = join(root, 'test/support/network/mapped-host.ts');
  const namespaces = ['--user', '--map-root-user', '--net', '--mount', '--pid', '--fork', '--kill-child'];
  const { stdout } = await run('unshare', [...namespaces, 'sh', '-c', script, process.execPath, player], {
    cwd: directory,
    env: { PATH: process.env['PATH'], HOME: directory },
    timeout: longPatienceMs,
  });
  return JSON.parse(stdout) as Mapped;
}

const mapped = blockOf("The store's host is compiled in", 'yaml');
const withoutNamespaces = 'no network of its own can be made here (unshare --user --net --mount)';

test('a program with a hard-coded host calls the agent, which calls the store', async (context) => {
  context.skip(!canMapHosts(), withoutNamespaces);
  await using directory = temporaryDirectory();
  // The test store's certificate has no public authority.
  const passed = mapped
    .replace('203.0.113.7', '127.0.0.2')
    .replace('upstream:\n', 'upstream:\n  ca_file: ./store-tls/ca.pem\n');
  const played = await playMapped(directory.path, passed);
  expect(played.concluded).toEqual(['VALID', 'USES 1']);
  expect(played.status.upstream.last_error).toBeNull();
  expect(played.doctor).not.toContain('fail');
});

test('without connect_to, status and doctor report that the agent calls itself', async (context) => {
  context.skip(!canMapHosts(), withoutNamespaces);
  await using directory = temporaryDirectory();
  const unpassed = mapped.replace(/^ {2}connect_to.*\n/m, '');
  const { concluded, status, doctor } = await playMapped(directory.path, unpassed);
  expect(concluded).toEqual(['TRY LATER', 'FAILED']);
  expect(status.upstream.last_error).toMatch(/itself/);
  expect(doctor).toMatch(/^fail .*itself.*connect_to/m);
});

test('a Node program runs the agent inside its own process', async () => {
  await using directory = temporaryDirectory();
  const folder = directory.path;
  const installed = join(folder, 'node_modules/latchkey');
  mkdirSync(installed, { recursive: true });
  execFileSync(process.execPath, [
    join(root, 'node_modules/typescript/bin/tsc'),
    '--project',
    join(root, 'src'),
    '--outDir',
    join(installed, 'dist'),
    // `npm run check` checks the types.
    '--noCheck',
    '--declaration',
    'false',
  ]);
  for (const file of globSync('**/schema.sql', { cwd: join(root, 'src') })) {
    cpSync(join(root, 'src', file), join(installed, 'dist', file));
  }
  cpSync(join(root, 'package.json'), join(installed, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(installed, 'node_modules'));
  await using store = await startStore();
  const configuration = {
    state_dir: './latchkey-state',
    listen: { tcp: '127.0.0.1:0' },
    upstream: { base_url: store.url },
    products: [{ key: 'RGsF', secret }],
  };
  writeFileSync(join(folder, 'latchkey.yaml'), JSON.stringify(configuration), { mode: 0o600 });
  const [, program = ''] = await desktopApp.build(folder);
  const rest = readFileSync(program, 'utf8').replace(/^import fs.*\n/m, '');
  const block = blockOf('It is a Node program', 'js');
  writeFileSync(
    join(folder, 'program.mjs'),
    `import fs from 'node:fs';\n${block}\n${rest}\nawait agent.stop();\n`,
  );
  const { stdout } = await run(process.execPath, ['program.mjs', 'check', licenseKey], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, PRODUCT_SECRET: secret, LICENSE_FILE: 'activation' },
    timeout: patienceMs,
  });
  expect(stdout).toMatch(/^VALID$/m);
});
