import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, afterAll, expect, test } from 'vitest';
import { startSandbox } from '../../src/testing.ts';
import { runProcess } from '../support/process/command-line.ts';
import { machineEnvironment, machineNode, npm } from '../support/process/npm.ts';
import { compile } from '../support/process/installed-client.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
const place = temporaryDirectory();
const program = join(place.path, 'my-program');

beforeAll(async () => {
  mkdirSync(program);
  execFileSync(process.execPath, [join(root, 'src/packaging/client-package.ts'), place.path], {
    env: machineEnvironment(place.path),
  });
  writeFileSync(join(program, 'package.json'), '{"private":true}');
  // The cache is empty, and nothing is downloaded.
  const cache = join(place.path, 'empty-cache');
  await npm(program, 'install', '--offline', '--cache', cache, `../latchkey-client-${version}.tgz`);
}, 120_000);
afterAll(() => place[Symbol.asyncDispose]());

test('the package of the client installs without a network, as one package of at most 400 kB', () => {
  const installed = globSync(join(program, 'node_modules/**/package.json')).map(
    (file) => (JSON.parse(readFileSync(file, 'utf8')) as { name?: string }).name,
  );
  expect(installed.filter((name) => name !== undefined)).toEqual(['latchkey-client']);
  const files = globSync(join(program, 'node_modules/latchkey-client/**/*.*'));
  const bytes = files.reduce((sum, file) => sum + readFileSync(file).length, 0);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(400_000);
});

test("a program verifies with it as an ES module and as CommonJS, also on the machine's older Node", async () => {
  await using sandbox = await startSandbox();
  const environment = { LATCHKEY_URL: sandbox.agent.url, SECRET: sandbox.productSecret };
  const call =
    "connect({ productSecret: process.env.SECRET }).verify('WTKP4-66NL5-HMKQW-GFSCZ').then(({ verdict }) => console.log(verdict));";
  writeFileSync(join(program, 'program.mjs'), `import { connect } from 'latchkey-client';\n${call}`);
  writeFileSync(join(program, 'program.cjs'), `const { connect } = require('latchkey-client');\n${call}`);
  for (const node of [process.execPath, machineNode() ?? process.execPath]) {
    for (const file of ['program.mjs', 'program.cjs']) {
      const said = await runProcess([], environment, [node, file], program);
      expect([node, file, said]).toEqual([node, file, { code: 0, out: 'valid\n', err: '' }]);
    }
  }
});

test.each([
  ['nodenext', 'nodenext'],
  ['esnext', 'bundler'],
])('TypeScript finds its types with the modules %s', async (module, moduleResolution) => {
  const source = "import { verifyLease, type LeaseVerdict } from 'latchkey-client';\n";
  const use = 'export const check: LeaseVerdict = verifyLease({ licenseKey: 1 });\n';
  writeFileSync(join(program, 'right.mts'), source + use.replace('{ licenseKey: 1 }', '{} as never'));
  writeFileSync(join(program, 'wrong.mts'), source + use);
  const typeRoots = join(root, 'node_modules/@types');
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--target',
    'es2022',
    '--types',
    'node',
    '--typeRoots',
    typeRoots,
  ];
  const types = async (file: string) =>
    await compile(
      ...options,
      '--module',
      module,
      '--moduleResolution',
      moduleResolution,
      join(program, file),
    );
  await types('right.mts');
  await expect(types('wrong.mts')).rejects.toThrow("Type 'number' is not assignable to type 'string'");
});

test('the guide names the commands that build and install the package', () => {
  const guide = readFileSync(join(root, 'examples/guides/client.md'), 'utf8');
  expect(guide).toContain(
    `\nnpm run build:client-package && cd ../my-program && npm install ../latchkey/latchkey-client-${version}.tgz\n`,
  );
});
