import { join } from 'node:path';
import { type Command, type Group, nameOf } from '../../../src/cli/command.ts';
import { findCommand } from '../../../src/cli/command-line.ts';
import { commands } from '../../../src/cli/commands.ts';
import { readPage } from '../../../src/cli/reference.ts';

export interface Place {
  readonly words: readonly string[];
  readonly found: Command | Group;
}

/** Every command and group, in the order of the help. */
export async function everyPlace(): Promise<readonly Place[]> {
  const loaded = await Promise.all(commands.map(({ load }) => load()));
  return loaded.flatMap((found) => placesIn(found, []));
}

function placesIn(found: Command | Group, before: readonly string[]): readonly Place[] {
  const words = [...before, nameOf(found)];
  const inside = 'commands' in found ? found.commands : [];
  return [{ words, found }, ...inside.flatMap((each) => placesIn(each, words))];
}

/** The name of every command, in the order of the help, such as `outbox retry`. */
export async function everyLine(): Promise<readonly string[]> {
  const places = await everyPlace();
  return places.filter(({ found }) => 'handler' in found).map(({ words }) => words.join(' '));
}

/** A command line with a value for every required argument. Files are in `folder`. */
export async function completeLine(line: string, folder: string): Promise<readonly string[]> {
  const { usage } = await readPage(await findCommand(line.split(' '), commands), commands);
  const given = usage
    .replaceAll(/ \[[^\]]*\]/g, '')
    .split(' ')
    .slice(1)
    .map((word) => {
      if (/^(?:FILE|FOLDER|<file>)$/.test(word)) return join(folder, 'made');
      if (word.startsWith('<items')) return 'K=1';
      return /^<|^[A-Z]+$/.test(word) ? 'made' : (word.split('|', 1)[0] ?? word);
    });
  if (line === 'support') return [...given, '--output', join(folder, 'made')];
  return line.startsWith('service ') ? [...given, '--root', folder] : given;
}
