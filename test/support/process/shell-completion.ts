import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { ownProgram } from './command-line.ts';
import { temporaryDirectory } from '../temporary.ts';
import { patienceMs } from '../patience.ts';

/** The completions that a shell offers at the end of each command line, typed in `folder`. */
export type Complete = (
  script: string,
  lines: readonly string[],
  folder?: string,
) => Promise<readonly (readonly string[])[]>;

const run = promisify(execFile);

/** Whether a program is on the PATH. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}

/** A folder for the PATH with a `latchkey` that answers completion requests, and otherwise prints its arguments. */
function makeProgram(folder: string): { readonly path: string; readonly given: string } {
  const [program, given] = ['latchkey', 'given'].map((name) => join(folder, name)) as [string, string];
  const own = ownProgram.map(quote).join(' ');
  writeFileSync(
    program,
    `#!/bin/sh\n[ "$1" = completion ] && exec ${own} "$@"\nfor word; do printf '%s|' "$word"; done >> ${quote(given)}\necho >> ${quote(given)}\n`,
  );
  chmodSync(program, 0o755);
  return { path: [folder, process.env['PATH']].join(delimiter), given };
}

/** Completes in bash, by the function that the script registers. */
export const completeInBash: Complete = async (script, lines, folder) => {
  await using directory = temporaryDirectory();
  const { path } = makeProgram(directory.path);
  const asked = lines.map((line) => {
    // Bash also splits words at = and :, which become separate words.
    const words = line.split(' ').flatMap((word) => word.split(/(?<=[=:])|(?=[=:])/));
    return `COMP_WORDS=(${words.map(quote).join(' ')}); COMP_CWORD=${words.length - 1}; COMPREPLY=(); $complete; (IFS='|'; echo "\${COMPREPLY[*]}")`;
  });
  const find = 'complete=$(complete -p latchkey); complete=${complete#*-F }; complete=${complete%% *}';
  const { stdout, stderr } = await run('bash', ['--norc', '-c', [script, find, ...asked].join('\n')], {
    timeout: patienceMs,
    env: { ...process.env, PATH: path },
    cwd: folder,
  });
  if (stderr !== '') throw new Error(stderr);
  return splitLines(stdout);
};

/**
 * Presses tab and enter after each line in an interactive bash; returns the words of the command that ran.
 */
export const typeInBash: Complete = async (script, lines, folder) => {
  await using directory = temporaryDirectory();
  const { path, given } = makeProgram(directory.path);
  const startUp = join(directory.path, 'bashrc');
  writeFileSync(startUp, `${script}\nPS1='READY>'\nbind 'set bell-style none'\n`);
  const shell = spawn('script', ['-qec', `bash --noprofile --rcfile ${quote(startUp)} -i`, '/dev/null'], {
    timeout: patienceMs,
    env: { ...process.env, PATH: path, TERM: 'dumb', HOME: directory.path },
    cwd: folder,
  });
  const ended = once(shell, 'exit');
  for await (const chunk of shell.stdout) {
    // The line editor must control the terminal before the first key.
    if (String(chunk).includes('READY>')) break;
  }
  shell.stdin.end([...lines.map((line) => `${line}\t\n`), 'exit\n'].join(''));
  await ended;
  return existsSync(given) ? splitLines(readFileSync(given, 'utf8').replaceAll('|\n', '\n')) : [];
};

/** Completes in fish, as fish's own tests do. */
export const completeInFish: Complete = async (script, lines, folder) => {
  await using directory = temporaryDirectory();
  const { path } = makeProgram(directory.path);
  const asked = lines.map((line) => `echo (complete -C ${quote(line)} | string join '|')`);
  const { stdout, stderr } = await run('fish', ['--no-config', '-c', [script, ...asked].join('\n')], {
    timeout: patienceMs,
    env: { ...process.env, PATH: path, HOME: directory.path },
    cwd: folder,
  });
  if (stderr !== '') throw new Error(stderr);
  return splitLines(stdout).map((words) => words.map((word) => word.split('\t', 1)[0] ?? ''));
};

/** Completes in PowerShell, by the function that its Tab key calls. */
export const completeInPowerShell: Complete = async (script, lines, folder) => {
  await using directory = temporaryDirectory();
  const { path } = makeProgram(directory.path);
  const asked = lines.map((line) => {
    const found = `(TabExpansion2 -inputScript ${quote(line)} -cursorColumn ${line.length}).CompletionMatches`;
    return `(${found} | ForEach-Object { $_.ListItemText }) -join '|'`;
  });
  const argv = ['-NoProfile', '-NonInteractive', '-Command', [script, ...asked].join('\n')];
  const { stdout, stderr } = await run('pwsh', argv, {
    timeout: patienceMs,
    env: { ...process.env, PATH: path, HOME: directory.path },
    cwd: folder,
  });
  if (stderr !== '') throw new Error(stderr);
  return splitLines(stdout);
};

/**
 * Completes in zsh by pressing the tab key. Zsh completes only in an interactive shell, so a second zsh runs
 * on a pseudo-terminal and records the matches.
 */
export const completeInZsh: Complete = async (script, lines, folder) => {
  await using directory = temporaryDirectory();
  const { path } = makeProgram(directory.path);
  const [startUp, found] = ['.zshrc', 'found'].map((name) => join(directory.path, name)) as [string, string];
  writeFileSync(startUp, zshStartUp(script, found));
  const asked = lines.map((line) => `zpty -w -n shell $'\\C-u'${quote(line)}$'\\t'`);
  const program = [
    'zmodload zsh/zpty',
    'zpty shell zsh -i',
    // The line editor must control the terminal before the first key.
    "zpty -r -m shell line '*READY*'",
    ...asked,
    "zpty -w -n shell $'\\C-uexit\\n'",
    'while zpty -r shell line; do :; done',
  ].join('\n');
  const child = spawn('zsh', ['-f', '-c', program], {
    timeout: patienceMs,
    env: { PATH: path, HOME: directory.path, ZDOTDIR: directory.path, TERM: 'xterm' },
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const stderr = await text(child.stderr);
  if (stderr !== '') throw new Error(`zsh: ${stderr}`);
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
  # With these it only sorts out matches, and adds none.
  if [[ -z \${(M)@:#-[OAD]} ]]; then
    builtin compadd -O hits "$@"
    offered+=($hits)
  fi
  builtin compadd "$@"
}
forget-offered () { offered=(); compprefuncs=(forget-offered) }
write-offered () { print -r -- "\${(j:|:)offered}" >> ${found}; comppostfuncs=(write-offered) }
compprefuncs=(forget-offered)
comppostfuncs=(write-offered)
zle-line-init () { print READY; unfunction zle-line-init }
zle -N zle-line-init
`;
}

function splitLines(output: string): readonly (readonly string[])[] {
  return output
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => (line === '' ? [] : line.split('|')));
}

function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
