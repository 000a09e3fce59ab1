import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { nameOf } from '../../../src/cli/command.ts';
import { commands } from '../../../src/cli/commands.ts';
import { explanations } from '../../../src/cli/explanation.ts';
import { everyPlace } from '../../support/app/every-command.ts';
import { latchkey } from '../../support/process/command-line.ts';
import { startFakeDaemon } from '../../support/process/fake-daemon.ts';
import * as shell from '../../support/process/shell-completion.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/** What the program says may follow: the kind, and the words without what they mean. */
async function next(...words: string[]): Promise<readonly string[]> {
  const { code, out, err } = await latchkey('completion', 'next', '--json', '--', ...words);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const { kind, words: terms } = JSON.parse(out) as { kind: string; words: { term: string }[] };
  return [kind, ...terms.map(({ term }) => term)];
}

test('completion offers every option in the help of a command', async () => {
  for (const { words } of await everyPlace()) {
    const { out } = await latchkey(...words, '--help');
    const [help = ''] = out.split('\nExamples:');
    const told = [...help.matchAll(/^ +(?:-\w, )?(--[a-z-]+)/gm)].map(([, option = '']) => option);
    expect((await next(...words, '--')).toSorted()).toEqual(['words', ...told].toSorted());
  }
});

test('completion offers every command', async () => {
  expect(await next('')).toEqual(['words', ...commands.map(({ name }) => name)]);
  for (const { words, found } of await everyPlace()) {
    if (!('commands' in found)) continue;
    expect(await next(...words, '')).toEqual(['words', ...found.commands.map(nameOf)]);
  }
});

test('completion after help offers commands', async () => {
  expect(await next('help', '')).toEqual(await next(''));
  expect(await next('help', 'outbox', '')).toEqual(await next('outbox', ''));
  for (const words of [
    ['outbox', 'retry'],
    ['no-such', 'command'],
  ]) {
    expect(await next('help', ...words, '')).toEqual(['words']);
  }
});

test('completion after explain offers every code', async () => {
  const codes = explanations.map(({ name }) => name);
  expect(codes).toContain('storage_full');
  expect(await next('explain', '')).toEqual(['words', ...codes]);
  expect(await next('explain', 'storage_full', '')).not.toContain('uncertain');
});

test('completion offers no option twice, and none after --', async () => {
  expect(await next('status', '--check', '--')).toEqual([
    'words',
    ...(await next('status', '--')).filter((word) => !['words', '--check'].includes(word)),
  ]);
  expect(await next('verify', '--', '--')).toEqual(['words']);
});

test('completion offers values of the right kind', async () => {
  expect(await next('outbox', 'list', '--state', '')).toContain('uncertain');
  expect(await next('outbox', 'list', '--state=')).toContain('uncertain');
  expect(await next('doctor', '--config', './')).toEqual(['file']);
  expect(await next('--state-dir', '')).toEqual(['folder']);
  expect(await next('--state-dir', 'x', 'out')).toContain('outbox');
  expect(await next('preload', '')).toEqual(['file']);
  expect(await next('license', 'list', '--limit', '')).toEqual(['words']);
  expect(await next('verify', '')).toEqual(['words']);
  expect(await next('backup', 'x', '')).toContain('--config');
  expect(await next('nothing', '')).toEqual(['words']);
});

test.each([
  ['operation', 'operations', ['outbox', 'retry']],
  ['operation', 'operations', ['outbox', 'show']],
  ['operation', 'operations', ['outbox', 'drop']],
  ['operation', 'operations', ['outbox', 'confirm']],
  ['product', 'products', ['product', 'rotate']],
  ['product', 'products', ['license', 'issue', '--product']],
  ['product', 'products', ['collection', 'add', 'Name', 'RGsF']],
  ['coupon', 'coupons', ['coupon', 'end']],
  ['token', 'tokens', ['token', 'revoke']],
  ['account', 'accounts', ['account', 'rotate']],
  ['collection', 'collections', ['collection', 'show']],
  ['purchase', 'purchases', ['purchase', 'refund']],
  ['act', 'acts', ['audit', 'show']],
])('completion offers the id of each %s of the running daemon: %s, %j', async (_, member, words) => {
  await using daemon = await startFakeDaemon();
  const id = {
    operations: 'id',
    products: 'product_key',
    coupons: 'id',
    tokens: 'token_id',
    accounts: 'account_id',
    collections: 'collection_id',
    purchases: 'purchase_id',
    acts: 'id',
  }[member] as string;
  daemon.answer({ body: { data: { [member]: [{ [id]: 'one' }, { [id]: 2 }] } } });
  expect(await next('--state-dir', daemon.stateDir, ...words, '')).toEqual(['words', 'one', '2']);
});

test('completion reads quotes, backslashes and ~ as the shell does', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: { operations: [{ id: '0198-aa' }] } } });
  const { stateDir } = daemon;
  vi.stubEnv('HOME', dirname(stateDir));
  const home = `~/${basename(stateDir)}`;
  // The last one is not closed yet.
  const quoted = [`'${stateDir}'`, `"${stateDir}"`, stateDir.replaceAll('/', '\\/'), home, `"${stateDir}`];
  for (const written of quoted) {
    const argv = ['--quoted', '--', 'outbox', 'retry', '--state-dir', written, ''];
    const { out } = await latchkey('completion', 'next', ...argv);
    expect([written, out]).toEqual([written, expect.stringMatching(/^words\n0198-aa\n/)]);
  }
  expect(await next('outbox', 'retry', '--state-dir', home, '')).toEqual(['words', '0198-aa']);
});

test('completion offers nothing and prints no error without a daemon', async () => {
  await using directory = temporaryDirectory();
  expect(await next('outbox', 'retry', '--state-dir', directory.path, '')).toEqual(['words']);
  expect(await next('outbox', 'retry', '--config', join(directory.path, 'none.yaml'), '')).toEqual(['words']);
});

const shells: readonly (readonly [name: string, complete: shell.Complete, program?: string])[] = [
  ['bash', shell.completeInBash],
  ['zsh', shell.completeInZsh],
  ['fish', shell.completeInFish],
  ['powershell', shell.completeInPowerShell, 'pwsh'],
];

for (const [name, complete, program = name] of shells) {
  const isMissing = !shell.isInstalled(program);
  const note = isMissing ? ` (skipped: ${program} is not installed)` : '';

  test.skipIf(isMissing)(`${name} completes commands, options, choices and ids${note}`, async () => {
    await using daemon = await startFakeDaemon();
    daemon.answer({ body: { data: { operations: [{ id: '0198-aa' }, { id: '0199-bb' }] } } });
    const { code, out } = await latchkey('completion', name);
    expect(code).toBe(0);
    const offered = await complete(out, [
      'latchkey ver',
      'latchkey coupon cr',
      'latchkey status --che',
      'latchkey verify K --j',
      'latchkey sync pa',
      'latchkey outbox list --state in',
      'latchkey outbox list --state=inf',
      `latchkey outbox retry --state-dir ${daemon.stateDir} 0198`,
      'latchkey outbox retry --state-dir /nowhere ',
      'latchkey nothing ',
    ]);
    const value = name === 'fish' ? '--state=inferred' : 'inferred';
    expect(offered.map((words) => words.toSorted())).toEqual([
      ['verify', 'version'],
      ['create'],
      ['--check'],
      ['--json'],
      ['pause'],
      ['in_flight', 'inferred'],
      [value],
      ['0198-aa'],
      [],
      [],
    ]);
  });
}

test('the script for PowerShell asks for completions without an empty argument, and offers no files among words', async () => {
  const { out } = await latchkey('completion', 'powershell');
  for (const line of [
    'Register-ArgumentCompleter -Native -CommandName latchkey -ScriptBlock {',
    "    $arguments = @('completion', 'next')",
    "    if ($current -eq '') { $arguments += '--blank' } else { $words += $current }",
    "    if ($null -eq $found) { '' } else { $found }",
    String.raw`    $before = if ($current -match '^--[\w-]+=') { $Matches[0] } else { '' }`,
  ]) {
    expect(out.split('\n')).toContain(line);
  }
  // Every bracket and quote is closed.
  const code = out.replaceAll(/#.*/g, '').replaceAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"/g, '');
  expect(code).not.toMatch(/['"`]/);
  for (const [open = '', close = ''] of ['()', '{}', '[]'].map((pair) => pair.split(''))) {
    expect(code.split(open).length, open).toBe(code.split(close).length);
  }
});

test('completion next --blank completes an empty word after the others', async () => {
  const asked = async (...words: string[]): Promise<string> =>
    (await latchkey('completion', 'next', ...words)).out;
  expect(await asked('--blank', '--', 'outbox')).toBe(await asked('--', 'outbox', ''));
  expect(await asked('--blank', '--')).toBe(await asked('--', ''));
});

test('completion for another shell is a usage error', async () => {
  expect(await latchkey('completion', 'tcsh')).toMatchObject({ code: 2 });
});

/** A folder with a file and a folder that have blanks in their names. */
async function folderWithBlanks(): Promise<ReturnType<typeof temporaryDirectory>> {
  const directory = temporaryDirectory();
  await writeFile(join(directory.path, 'my config.yaml'), '{}');
  await mkdir(join(directory.path, 'my state'));
  return directory;
}

const isPtyMissing = !shell.isInstalled('script');

test.skipIf(isPtyMissing)('bash completes files and folders, with blanks too', async () => {
  await using directory = await folderWithBlanks();
  const { out } = await latchkey('completion', 'bash');
  const lines = [
    'latchkey --config my\\ c',
    'latchkey --state-dir my',
    'latchkey --state-dir=m',
    "latchkey doctor --config './my c",
    'latchkey outbox re',
    'latchkey verify m',
  ];
  expect(await shell.typeInBash(out, lines, directory.path)).toEqual([
    ['--config', 'my config.yaml'],
    ['--state-dir', 'my state/'],
    ['--state-dir=my state/'],
    ['doctor', '--config', './my config.yaml'],
    ['outbox', 'retry'],
    ['verify', 'm'],
  ]);
});

test.skipIf(!shell.isInstalled('zsh'))('zsh completes files and folders, with blanks too', async () => {
  await using directory = await folderWithBlanks();
  const { out } = await latchkey('completion', 'zsh');
  const lines = ['latchkey --config my\\ c', 'latchkey --state-dir my', 'latchkey doctor --config=my'];
  const offered = await shell.completeInZsh(out, lines, directory.path);
  expect(offered.map((words) => [...new Set(words)].toSorted())).toEqual([
    [String.raw`my\ config.yaml`],
    [String.raw`my\ state`],
    [String.raw`my\ config.yaml`, String.raw`my\ state`],
  ]);
});

test.skipIf(!shell.isInstalled('fish'))('fish completes files and folders, with blanks too', async () => {
  await using directory = await folderWithBlanks();
  const { out } = await latchkey('completion', 'fish');
  const lines = ['latchkey --config my\\ c', 'latchkey --state-dir my', 'latchkey doctor --config=my'];
  expect(await shell.completeInFish(out, lines, directory.path)).toEqual([
    ['my config.yaml'],
    ['my state/'],
    ['--config=my config.yaml', '--config=my state/'],
  ]);
});
