import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startSandbox } from '../../src/testing.ts';
import { clientGuide, guidePrograms } from '../support/reference/client-guide.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');

/** The address of an agent that `latchkey init` configures. */
const addressOfInit = 'http://127.0.0.1:8787';

it('every program of the client guide is followed by its output', () => {
  expect(guidePrograms.length).toBe(clientGuide.match(/^```ts$/gm)?.length);
});

it('the first program of the client guide uses the address that `latchkey init` configures', () => {
  expect(guidePrograms[0]?.source).toContain(`url: '${addressOfInit}'`);
});

it.each(guidePrograms)(
  'the program under "$heading" of the client guide prints its output',
  async (program) => {
    await using sandbox = await startSandbox();
    await using home = temporaryDirectory();
    const source = program.source.replace(addressOfInit, sandbox.agent.url);
    writeFileSync(join(home.path, 'program.mts'), source);
    symlinkSync(join(root, 'node_modules'), join(home.path, 'node_modules'));
    const { stdout } = await run(process.execPath, [join(home.path, 'program.mts')], {
      cwd: home.path,
      env: { ...process.env, LATCHKEY_URL: source === program.source ? sandbox.agent.url : '' },
    });
    expect(stdout).toBe(program.output);
  },
);
