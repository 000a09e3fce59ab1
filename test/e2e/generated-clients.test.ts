import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { goPrograms, missingTool, npmTools, pythonPackages } from '../support/reference/api-tools.ts';
import { secret, startDialectHarness } from '../support/harness/dialect-harness.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/*
 * Clients that well-known generators make of `GET /openapi.json`: each verifies a license key, records a use under an
 * idempotency key, and reads a problem. The programs are in the folder beside this file.
 */

const programs = fileURLToPath(new URL('generated-clients', import.meta.url));
const compiler = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));

type Command = readonly [string, ...string[]];
type Client = {
  generator: string;
  /** The file that is there when the generator can run. */
  needs: string;
  /** Makes the client in the current folder, where `openapi.json` is, and runs its program; the last is what it says. */
  commands: readonly Command[];
  /** Puts the program, and what the generator wants, in place. */
  prepare: (directory: string) => void;
};

function command(program: string, options: string): Command {
  return [program, ...options.split(' ')];
}

const clients: readonly Client[] = [
  {
    generator: 'openapi-typescript and openapi-fetch',
    needs: `${npmTools}/openapi-typescript`,
    prepare: (directory) => {
      symlinkSync(npmTools, `${directory}/node_modules`);
      copyFileSync(`${programs}/typescript.ts`, `${directory}/program.ts`);
      writeFileSync(`${directory}/package.json`, '{"type":"module"}');
      const compilerOptions = {
        strict: true,
        noEmit: true,
        target: 'esnext',
        module: 'nodenext',
        allowImportingTsExtensions: true,
        types: ['node'],
        typeRoots: [fileURLToPath(new URL('../../node_modules/@types', import.meta.url))],
      };
      writeFileSync(`${directory}/tsconfig.json`, JSON.stringify({ compilerOptions, files: ['program.ts'] }));
    },
    commands: [
      [process.execPath, `${npmTools}/openapi-typescript/bin/cli.js`, 'openapi.json', '-o', 'openapi.d.ts'],
      [process.execPath, compiler, '--project', '.'],
      [process.execPath, 'program.ts'],
    ],
  },
  {
    generator: 'openapi-python-client',
    needs: `${pythonPackages}/bin/openapi-python-client`,
    prepare: (directory) => copyFileSync(`${programs}/python.py`, `${directory}/program.py`),
    commands: [
      command(
        `${pythonPackages}/bin/openapi-python-client`,
        'generate --path openapi.json --meta none --output-path latchkey_client',
      ),
      ['python3', 'program.py'],
    ],
  },
  {
    generator: 'oapi-codegen',
    needs: `${goPrograms}/oapi-codegen`,
    prepare: (directory) => {
      mkdirSync(`${directory}/latchkey`);
      copyFileSync(`${programs}/go.go`, `${directory}/main.go`);
      writeFileSync(`${directory}/go.mod`, 'module example.com/check\n\ngo 1.23\n');
    },
    commands: [
      command(
        `${goPrograms}/oapi-codegen`,
        '-generate types,client -package latchkey -o latchkey/client.go openapi.json',
      ),
      ['go', 'mod', 'tidy'],
      ['go', 'run', '.'],
    ],
  },
];

describe.each(clients)('a client by $generator', ({ needs, commands, prepare }) => {
  const missing = missingTool(needs);

  test.skipIf(missing !== '')(
    `verifies a license key, records a use and reads a problem${missing}`,
    async () => {
      await using home = temporaryDirectory();
      await using harness = await startDialectHarness('authority', 'tcp');
      const address = harness.addresses.tcp ?? '';
      const description = await fetch(`${address}/openapi.json`);
      writeFileSync(`${home.path}/openapi.json`, await description.text());
      prepare(home.path);
      const env = { ...environment(), ADDRESS: address, SECRET: secret };
      let said = '';
      for (const [program, ...args] of commands) {
        const ran = await promisify(execFile)(program, args, {
          cwd: home.path,
          env,
          maxBuffer: 16 * 1024 ** 2,
        });
        said = ran.stdout;
      }
      expect(JSON.parse(said)).toEqual([true, 1, 'license_not_found']);
    },
    300_000,
  );
});

function environment(): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH, HOME, PYTHONPATH: pythonPackages, GOTOOLCHAIN: 'local' };
}
