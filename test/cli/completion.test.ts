import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { commands } from '../../src/cli/commands.ts';
import { latchkey } from '../support/command-line.ts';

/** What a shell offers after words and a beginning. */
function complete(script: string, ...words: string[]): string[] {
  const line = words.map((word) => `'${word}'`).join(' ');
  const asked = `${script}\nCOMP_WORDS=(latchkey ${line}); COMP_CWORD=${words.length}; _latchkey; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', asked], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.trim().split('\n');
}

test('bash completes commands, the members of groups, and options', async () => {
  const { code, out } = await latchkey('completion', 'bash');
  expect(code).toBe(0);
  const names = commands.map(({ usage }) => usage.split(' ')[0]);
  expect(complete(out, '')).toEqual([...names, '--config', '--state-dir', '--json', '--help']);
  expect(complete(out, 'ver')).toEqual(['verify']);
  expect(complete(out, 'coupon', 'cr')).toEqual(['create']);
  expect(complete(out, 'status', '--c')).toEqual(['--check', '--config']);
  expect(complete(out, 'verify', 'K', '--j')).toEqual(['--json']);
  expect(complete(out, 'service', 'install', '--')).toContain('--user');
});

test('zsh gets the same', async () => {
  const { code, out } = await latchkey('completion', 'zsh');
  expect(code).toBe(0);
  expect(out).toContain('bashcompinit');
});

test('another shell is misuse', async () => {
  expect(await latchkey('completion', 'tcsh')).toMatchObject({ code: 2 });
});
