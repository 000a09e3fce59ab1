import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const examples = join(import.meta.dirname, '../../../examples');

/** The guides for people, by their paths below `examples/`. Another test runs the client guide. */
export const guides: readonly string[] = [
  'README.md',
  ...readdirSync(join(examples, 'guides'))
    .filter((name) => name !== 'client.md')
    .map((name) => join('guides', name)),
];

/** The text of a file below `examples/`. */
export function readExample(path: string): string {
  return readFileSync(join(examples, path), 'utf8');
}

/** The code blocks in a language, without the indentation of a surrounding list. */
export function blocksOf(text: string, language: string): string[] {
  const blocks = text.matchAll(/^( *)```([a-z]+)\n([\s\S]*?)^\1```$/gm);
  return [...blocks].flatMap(([, indentation = '', found, code = '']) =>
    found === language ? [code.replaceAll(new RegExp(`^${indentation}`, 'gm'), '')] : [],
  );
}

/** The text under a heading of any level, up to the next heading of its level or above. */
export function chapterOf(text: string, heading: string): string {
  const [, level, chapter = ''] =
    new RegExp(`^(#+) ${heading.replaceAll(/[.?]/g, String.raw`\$&`)}\n([\\s\\S]*)`, 'm').exec(text) ?? [];
  if (level === undefined) throw new Error(`there is no heading ${heading}`);
  return chapter.split(new RegExp(`^#{1,${level.length}} `, 'm'), 1)[0] ?? '';
}

/** A command as words, without `sudo` and its options. */
export function wordsOf(line: string): string[] {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
  if (words[0] !== 'sudo') return words;
  return words.slice(words[1] === '-u' ? 3 : 1);
}

/** The commands of a chapter, one per line. */
export function commandsIn(chapter: string): string[] {
  return blocksOf(chapter, 'sh').flatMap((block) => block.split('\n').filter((line) => line.trim() !== ''));
}
