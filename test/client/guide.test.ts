import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/testing.ts';
import { compile } from '../support/process/installed-client.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const guide = readFileSync(join(root, 'examples/guides/client.md'), 'utf8');
const programs = [...guide.matchAll(/^## (.+)$|^```ts\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```/gm)];

/** The programs of the guide, each under its heading, and what it says that they print. */
const examples = programs.flatMap(([, , program, printed], index) =>
  program === undefined || printed === undefined ? [] : [{ heading: headingBefore(index), program, printed }],
);

/** README, Put it in front of your store's API. */
const addressOfInit = 'http://127.0.0.1:8787';

function headingBefore(index: number): string {
  return programs.slice(0, index).findLast(([, heading]) => heading !== undefined)?.[1] ?? '';
}

describe('the guide of the client', () => {
  it('has its programs', () => {
    expect(examples.length).toBe(guide.match(/^```ts$/gm)?.length);
  });

  it('begins with the agent that `init` makes', () => {
    expect(examples[0]?.program).toContain(`url: '${addressOfInit}'`);
  });

  it.each(examples)('$heading: the program prints what it says', async ({ program, printed }) => {
    await using sandbox = await startSandbox();
    await using home = temporaryDirectory();
    const told = program.replace(addressOfInit, sandbox.agent.url);
    writeFileSync(join(home.path, 'program.mts'), told.replaceAll(/latchkey\/(\w+)/g, sourceOf));
    symlinkSync(join(root, 'node_modules'), join(home.path, 'node_modules'));
    const { stdout } = await run(process.execPath, [join(home.path, 'program.mts')], {
      cwd: home.path,
      env: { ...process.env, LATCHKEY_URL: told === program ? sandbox.agent.url : '' },
    });
    expect(stdout).toBe(printed);
  });

  it('has programs that are typed as they are used', async () => {
    await using home = temporaryDirectory();
    mkdirSync(join(home.path, 'src'));
    for (const [index, { program }] of examples.entries()) {
      const text = program.replaceAll(/latchkey\/(\w+)/g, sourceOf);
      writeFileSync(join(home.path, 'src', `program-${index}.mts`), text);
    }
    symlinkSync(join(root, 'node_modules'), join(home.path, 'node_modules'));
    const project = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: { rewriteRelativeImportExtensions: false },
      include: [join(home.path, 'src')],
    };
    writeFileSync(join(home.path, 'tsconfig.json'), JSON.stringify(project));
    await expect(compile('--project', home.path)).resolves.toBeUndefined();
  });
});

/** Where the package has its entry. */
function sourceOf(_: string, entry: string): string {
  return join(root, 'src', entry === 'client' ? 'client/index.ts' : `${entry}.ts`);
}
