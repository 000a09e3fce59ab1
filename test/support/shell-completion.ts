import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './temporary.ts';

/** What a shell offers after each beginning of a command line; the last word of one is what is being typed. */
export type Complete = (script: string, lines: readonly string[]) => Promise<readonly (readonly string[])[]>;

const timeoutMs = 60_000;

/** Whether a program is on the PATH. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}

/** Asks bash, by the function that the script registers. */
export const completeInBash: Complete = async (script, lines) => {
  const asked = lines.map((line) => {
    const words = line.split(' ');
    return `COMP_WORDS=(${words.map(quote).join(' ')}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); $complete; echo "\${COMPREPLY[*]}"`;
  });
  const find = 'complete=$(complete -p latchkey); complete=${complete#*-F }; complete=${complete%% *}';
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', [script, find, ...asked].join('\n')], {
    encoding: 'utf8',
    timeout: timeoutMs,
  });
  if (stderr !== '') throw new Error(stderr);
  return splitLines(stdout);
};

/**
 * Asks zsh by pressing the tab key: its completion works only in an interactive shell, so a second zsh runs
 * on a pseudo-terminal, and writes down what is added to the list of matches.
 */
export const completeInZsh: Complete = async (script, lines) => {
  await using directory = temporaryDirectory();
  const [startUp, found] = ['.zshrc', 'found'].map((name) => join(directory.path, name)) as [string, string];
  writeFileSync(startUp, zshStartUp(script, found));
  const asked = lines.map((line) => `zpty -w -n shell $'\\C-u'${quote(line)}$'\\t'`);
  const program = [
    'zmodload zsh/zpty',
    'zpty shell zsh -i',
    // The terminal must be in the line editor's hands before the first key.
    "zpty -r -m shell line '*READY*'",
    ...asked,
    "zpty -w -n shell $'\\C-uexit\\n'",
    'while zpty -r shell line; do :; done',
  ].join('\n');
  const { stderr, status } = spawnSync('zsh', ['-f', '-c', program], {
    encoding: 'utf8',
    timeout: timeoutMs,
    env: { PATH: process.env['PATH'], HOME: directory.path, ZDOTDIR: directory.path, TERM: 'xterm' },
  });
  if (stderr !== '' || status === null) throw new Error(`zsh: ${stderr}`);
  return splitLines(readFileSync(found, 'utf8'));
};

function zshStartUp(script: string, found: string): string {
  return `
${script}
setopt no_auto_list no_beep
zstyle ':completion:*' insert-tab false
offered=()
compadd () {
  local hits=()
  builtin compadd -O hits "$@"
  offered+=($hits)
  builtin compadd "$@"
}
forget-offered () { offered=(); compprefuncs=(forget-offered) }
write-offered () { print -r -- "$offered" >> ${found}; comppostfuncs=(write-offered) }
compprefuncs=(forget-offered)
comppostfuncs=(write-offered)
zle-line-init () { print READY; unfunction zle-line-init }
zle -N zle-line-init
`;
}

function splitLines(text: string): readonly (readonly string[])[] {
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => (line === '' ? [] : line.split(' ')));
}

function quote(word: string): string {
  return `'${word}'`;
}
