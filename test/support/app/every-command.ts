import { join } from 'node:path';
import type { Entry } from '../../../src/cli/command.ts';
import { findCommand } from '../../../src/cli/command-line.ts';
import { commands } from '../../../src/cli/commands.ts';
import { readPage } from '../../../src/cli/reference.ts';

/** The name of every command, in the order of the help, such as `outbox retry`. */
export function linesOf(
  entries: readonly Entry[] = commands,
  before: readonly string[] = [],
): readonly string[] {
  return entries.flatMap((entry) => {
    const words = [...before, entry.name];
    return 'commands' in entry ? linesOf(entry.commands, words) : [words.join(' ')];
  });
}

/** A command line with a value for every required argument. Files are in `folder`. */
export async function completeLine(line: string, folder: string): Promise<readonly string[]> {
  const { usage } = await readPage(findCommand(line.split(' '), commands), commands);
  const given = usage
    .replaceAll(/ \[[^\]]*\]/g, '')
    .split(' ')
    .slice(1)
    .map((word) => {
      if (/^(?:FILE|FOLDER|<file>)$/.test(word)) return join(folder, 'made');
      if (word.startsWith('<items')) return 'K=1';
      return /^<|^[A-Z]+$/.test(word) ? 'made' : (word.split('|', 1)[0] ?? word);
    });
  return line.startsWith('service ') ? [...given, '--root', folder] : given;
}
