import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { viewerFiles, viewerPath } from '../../src/http/viewer-file.ts';
import { buildPage } from '../../src/packaging/console-page.ts';
import { startSandbox } from '../../src/testing.ts';
import { runProcess, type Outcome } from '../support/process/command-line.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { machineNode, npm, packPackage } from '../support/process/npm.ts';
import { certificate } from '../support/network/certificate.ts';
import { startForwarder } from '../support/network/forward-proxy.ts';
import { freePort } from '../support/network/free-port.ts';
import { listenSecurely } from '../support/network/listener.ts';
import { httpClient } from '../support/network/raw-http.ts';
import { servedConsole } from '../features/console/console-app.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const place = temporaryDirectory();
const [home, prefix] = [join(place.path, 'home'), join(place.path, 'prefix')];
const program = join(prefix, 'bin/latchkey');
afterAll(() => place[Symbol.asyncDispose]());

let tarball = '';
/** Outdated Nodes by version: the oldest Node that must still print the advice, and this machine's Node. */
const oldNodes: { version: string; node: string }[] = [];

beforeAll(async () => {
  for (const folder of [home, prefix]) mkdirSync(folder);
  tarball = packPackage(place.path);
  const oldest = join(place.path, 'node16');
  await npm(home, 'install', '--global', '--prefix', oldest, 'node@16');
  await npm(home, 'install', '--global', '--prefix', prefix, tarball);
  for (const node of [join(oldest, 'bin/node'), machineNode()]) {
    const version = node === null ? 'none' : execFileSync(node, ['--version'], { encoding: 'utf8' }).trim();
    if (node !== null && parseInt(version.slice(1), 10) < 24) oldNodes.push({ version, node });
  }
}, 300_000);

/** Runs the command that npm installed, with this `node` on the PATH. */
function run(node: string, ...argv: string[]): Promise<Outcome> {
  return runProcess(argv, { PATH: `${dirname(node)}:/usr/bin:/bin`, HOME: home }, [node, program]);
}

/** The documents that the README and the guides link to, by their paths in this repository. */
function namedBooks(): readonly string[] {
  const texts = ['README.md', ...globSync('examples/**/*.md')].map((path) => readFileSync(path, 'utf8'));
  return [...new Set(texts.flatMap((text) => text.match(/(?<=`)src\/[\w/]+\.md(?=[`,])/g) ?? []))];
}

test("the README's command packs and installs the npm package", () => {
  const readme = readFileSync('README.md', 'utf8');
  expect(readme).toContain(`\nnpm pack && npm install --global ./${basename(tarball)}`);
});

/** The versions of the dependencies that are tested, by their paths in node_modules. */
function testedVersions(): Map<string, string> {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean }>;
  };
  const needed = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);
  return new Map(needed.map(([path, { version }]) => [path, version]));
}

/** The versions of the packages in a folder, by their paths. */
function versionsIn(folder: string): Map<string, string> {
  const name = '{@*/*,[!@]*}/package.json';
  // Some packages have further files with this name, which only set the type of modules.
  const found = globSync([`node_modules/${name}`, `node_modules/**/node_modules/${name}`], { cwd: folder });
  const versions = found.map((path) => {
    const { version } = JSON.parse(readFileSync(join(folder, path), 'utf8')) as { version: string };
    return [dirname(path), version] as const;
  });
  return new Map(versions);
}

test('an installation gets the versions of all dependencies that are tested', () => {
  expect(versionsIn(join(prefix, 'lib/node_modules/latchkey'))).toEqual(testedVersions());
});

test('the npm package contains only its own files and its dependencies', () => {
  const packed = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).split('\n');
  const files = packed.filter((name) => !name.startsWith('package/node_modules/'));
  expect(files).toEqual(expect.arrayContaining(['package/dist/cli/launcher.js', 'package/dist/index.d.ts']));
  const kinds = files.filter(
    (name) =>
      name !== '' &&
      !/^package\/(?:dist\/.+\.(?:js|d\.ts)|dist\/latchkey\.1|dist\/(?:store\/sqlite|features\/postgres\/store)\/schema\.sql|dist\/client\/cjs\/package\.json|dist\/console\/(?:index\.html|style-[0-9a-f]+\.css)|dist\/third-party-console\.txt|examples\/.+|src\/.+\.md)$/.test(
        name,
      ),
  );
  expect(kinds.sort()).toEqual(
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'].map((name) => `package/${name}`),
  );
  expect(files.filter((name) => name.includes('packaging'))).toEqual([]);
  const books = namedBooks().map((path) => `package/${path}`);
  expect(books).toContain('package/src/http/README.md');
  expect(files).toEqual(expect.arrayContaining(books));
});

test('on an outdated Node, the npm package names the required version and a command that installs it', async () => {
  expect(oldNodes.length).toBeGreaterThan(0);
  let advice = '';
  for (const { version, node } of oldNodes) {
    const { code, out, err } = await run(node, 'status');
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(
      /^latchkey: Node 24\.15 or later is needed, and this is v[\d.]+\. Run: npm [^\n]+\n$/,
    );
    expect(err).toContain(version);
    advice = err.split('Run: npm ')[1]?.trim() ?? '';
  }
  // Many people disable npm scripts, and the `node` package needs a script.
  writeFileSync(join(home, '.npmrc'), 'ignore-scripts=true\n');
  await npm(home, ...advice.split(' '));
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  for (const { node } of oldNodes) {
    expect(await run(node, '--version')).toEqual({ code: 0, out: `${version}\n`, err: '' });
  }
  // The user's own `node` is not replaced, also not after Latchkey was installed again.
  await npm(home, 'install', '--global', '--prefix', prefix, tarball);
  expect(readdirSync(join(prefix, 'bin'))).toEqual(['latchkey']);
  for (const { node } of oldNodes) expect((await run(node, '--version')).code).toBe(0);
});

test('on an outdated Node, the npm package starts the installed newer Node with the same arguments, exit code and signals', async () => {
  for (const { node } of oldNodes) {
    const refused = await run(node, 'nonsense', '--json');
    expect([refused.code, JSON.parse(refused.err)]).toMatchObject([2, { error: { code: 'usage' } }]);
    await using folder = temporaryDirectory();
    const listen = { listen: { tcp: '127.0.0.1:0' } };
    await using daemon = await startDaemonProcess(folder.path, listen, {}, [node, program]);
    daemon.signal('SIGHUP');
    await daemon.said('the configuration was reloaded');
    daemon.signal('SIGTERM');
    await daemon.said('stopped');
    expect([await daemon.ended, daemon.complaints]).toEqual([0, '']);
  }
});

test('the installed package drains when a supervisor sends SIGTERM to all processes of the service', async () => {
  for (const { node } of oldNodes) {
    await using folder = temporaryDirectory();
    const listen = { listen: { tcp: '127.0.0.1:0' } };
    await using daemon = await startDaemonProcess(folder.path, listen, {}, [node, program]);
    const child = readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/children`, 'utf8').trim();
    process.kill(Number(child), 'SIGTERM');
    daemon.signal('SIGTERM');
    expect(await daemon.ended).toBe(0);
  }
});

test('a Node program that installs the package as the guide says gets the tested dependencies, and calls the agent by its client', async () => {
  const command = /^npm pack && cd \.\.\/my-program && npm install (\S+)$/m.exec(
    readFileSync('examples/guides/client.md', 'utf8'),
  );
  const folder = join(place.path, 'my-program');
  for (const path of [folder, join(place.path, 'latchkey')]) mkdirSync(path);
  copyFileSync(tarball, join(place.path, 'latchkey', basename(tarball)));
  // The program has its own version of a dependency.
  writeFileSync(join(folder, 'package.json'), '{ "dependencies": { "lru-cache": "11.0.0" } }');
  await npm(folder, 'install', command?.[1] ?? '');
  expect(versionsIn(join(folder, 'node_modules/latchkey'))).toEqual(testedVersions());
  await using sandbox = await startSandbox();
  const text = `
    import { connect } from 'latchkey/client';
    const latchkey = connect({ productSecret: 'the-product-secret' });
    console.log((await latchkey.verify('WTKP4-66NL5-HMKQW-GFSCZ')).verdict);
  `;
  writeFileSync(join(folder, 'program.mjs'), text);
  const asked = await runProcess(
    [],
    { LATCHKEY_URL: sandbox.agent.url },
    [process.execPath, 'program.mjs'],
    folder,
  );
  expect(asked).toEqual({ code: 0, out: 'valid\n', err: '' });
  const commonJs = "require('latchkey/client').connect({ productSecret: 'the-product-secret' })";
  writeFileSync(
    join(folder, 'program.cjs'),
    `${commonJs}.verify('WTKP4-66NL5-HMKQW-GFSCZ').then(({ verdict }) => console.log(verdict));`,
  );
  const environment = { LATCHKEY_URL: sandbox.agent.url };
  const commonJsCommand = [process.execPath, 'program.cjs'] as const;
  expect(await runProcess([], environment, commonJsCommand, folder)).toEqual({
    code: 0,
    out: 'valid\n',
    err: '',
  });
});

test('the Node example, installed as its README says, calls the agent', async () => {
  const example = 'examples/clients/node';
  const [, install = ''] =
    /^npm (install \S+)$/m.exec(readFileSync(join(example, 'README.md'), 'utf8')) ?? [];
  const clone = join(place.path, 'a-clone');
  const folder = join(clone, example);
  cpSync(example, folder, { recursive: true });
  copyFileSync(tarball, join(clone, basename(tarball)));
  await npm(folder, ...install.split(' '));
  await using sandbox = await startSandbox();
  const environment = { LATCHKEY_URL: sandbox.agent.url, LATCHKEY_SECRET: sandbox.productSecret };
  const command = [process.execPath, 'license-check.js', 'WTKP4-66NL5-HMKQW-GFSCZ'] as const;
  expect(await runProcess([], environment, command, folder)).toEqual({
    code: 0,
    out: 'valid\nuses: 1\n',
    err: '',
  });
});

test('a second start uses the whole compile cache of the first, in every thread', async () => {
  await using folder = temporaryDirectory();
  const start = (): Promise<DaemonProcess> =>
    startDaemonProcess(
      folder.path,
      { listen: { tcp: '127.0.0.1:0' } },
      { NODE_DEBUG_NATIVE: 'COMPILE_CACHE' },
      [process.execPath, program],
    );
  const first = await start();
  first.signal('SIGTERM');
  expect(await first.ended).toBe(0);
  await using second = await start();
  // Standard error may arrive after later log lines; it is complete when the process has ended.
  await second.kill();
  const told = second.complaints.matchAll(/code cache for ESM \S+\/(\S+)\.js was ([^,]+),/g);
  const compiled = [...told].map(([, file = '', outcome = '']) => ({ file, outcome }));
  expect(compiled.filter(({ outcome }) => outcome !== 'accepted')).toEqual([]);
  expect(compiled.map(({ file }) => file)).toEqual(expect.arrayContaining(['compose', 'writer-worker']));
});

test('the installed program serves the files of Swagger UI', async () => {
  await using folder = temporaryDirectory();
  const command = [process.execPath, program] as const;
  await using daemon = await startDaemonProcess(folder.path, { listen: { tcp: '127.0.0.1:0' } }, {}, command);
  for (const name of viewerFiles) {
    const served = await fetch(new URL(`/docs/${name}`, daemon.tcp));
    expect(Buffer.from(await served.arrayBuffer()).equals(readFileSync(viewerPath(name)))).toBe(true);
  }
});

const product = { key: 'p1', secret: 'a secret of p1 that is long enough' };

/** Verifies a license key that the agent does not know, so that it asks the upstream. */
async function verify({ tcp }: DaemonProcess): Promise<number> {
  await using client = httpClient({ tcp });
  const headers = { 'product-secret-key': product.secret };
  return (await client.get('/api/v2/license/verify?license_key=AAAAA-BBBBB', { headers })).status;
}

test('the installed agent tunnels through a proxy to an https upstream', async () => {
  await using secure = await listenSecurely();
  await using forwarder = await startForwarder(secure.port);
  await using folder = temporaryDirectory();
  const ca = join(folder.path, 'ca.pem');
  writeFileSync(ca, certificate);
  const upstream = { base_url: 'https://localhost', proxy: forwarder.url, ca_file: ca };
  const tree = { listen: { tcp: '127.0.0.1:0' }, upstream, products: [product] };
  await using agent = await startDaemonProcess(folder.path, tree, {}, [process.execPath, program]);
  // The answer came through the proxy: without a proxy the status is 503.
  expect(await verify(agent)).toBe(404);
  expect(forwarder.asked).toContain('CONNECT localhost:443');
});

test("an agent does not load Node's own fetch, because it uses undici", async () => {
  await using folder = temporaryDirectory();
  const upstream = { base_url: `http://127.0.0.1:${await freePort()}` };
  const tree = { listen: { tcp: '127.0.0.1:0' }, upstream, products: [product] };
  const tell = 'process.once("exit", () => process._rawDebug(process.moduleLoadList.join("\\n")))';
  const command = [process.execPath, '--import', `data:text/javascript,${tell}`, program] as const;
  await using agent = await startDaemonProcess(folder.path, tree, {}, command);
  expect(await verify(agent)).toBe(503);
  agent.signal('SIGTERM');
  await agent.ended;
  const loaded = agent.complaints.split('\n');
  expect(loaded).toContain('NativeModule http');
  expect(loaded).not.toContain('NativeModule internal/deps/undici/undici');
});

test('the installed program serves the page of the console, with the license of what is in the page', async () => {
  await using folder = temporaryDirectory();
  const command = [process.execPath, program] as const;
  const listen = { tcp: '127.0.0.1:0' };
  await using daemon = await startDaemonProcess(folder.path, { listen }, {}, command);
  const { files } = await buildPage('console');
  expect(await servedConsole(daemon.tcp)).toEqual(files);
  const notice = execFileSync('tar', ['-xzOf', tarball, 'package/dist/third-party-console.txt'], {
    encoding: 'utf8',
  });
  expect(notice).toMatch(/^--- preact [\d.]+ \(MIT\)\n/);
  expect(notice).toContain('Permission is hereby granted, free of charge');
});
