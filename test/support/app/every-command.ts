import { join } from 'node:path';
import { type CommandEntry, nameOf } from '../../../src/cli/command.ts';
import { commands } from '../../../src/cli/commands.ts';
import { readChapter } from '../../../src/cli/syntax/chapter.ts';
import { followWords } from '../../../src/cli/syntax/place.ts';

/** The words of every command, in the order of the help: `outbox retry`. */
export function linesOf(
  entries: readonly CommandEntry[] = commands,
  before: readonly string[] = [],
): readonly string[] {
  return entries.flatMap((entry) => {
    const words = [...before, nameOf(entry)];
    return 'members' in entry ? linesOf(entry.members, words) : [words.join(' ')];
  });
}

/** A command line with something in the place of all that must be given; files are in `folder`. */
export async function completeLine(line: string, folder: string): Promise<readonly string[]> {
  const place = followWords(line.split(' '), commands);
  const { usage } = await readChapter(place, commands);
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
