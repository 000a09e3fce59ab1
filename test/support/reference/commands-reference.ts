import type { Term } from '../../../src/cli/command.ts';
import { commands } from '../../../src/cli/commands.ts';
import { type Page, readPages } from '../../../src/cli/reference.ts';

/** The options that commands share, then a heading and a list for each command, from its declaration. */
export async function commandsBook(): Promise<string> {
  const [program, ...pages] = await readPages(commands);
  const paging = pages.find(({ usage }) => usage.startsWith('latchkey account list'))?.options;
  if (program === undefined || paging === undefined) throw new Error('there is no program');
  return [
    `## Options without a command\n\n${listOf(program.options)}`,
    `## Options of every command\n\n${listOf(program.general)}`,
    `## Options of every list\n\n${listOf(paging)}`,
    ...pages.filter((page) => page.commands.length === 0).map((page) => write(page, paging)),
  ].join('\n\n');
}

function write(page: Page, paging: readonly Term[]): string {
  const { usage, summary, positionals, options, examples, epilogue } = page;
  const heading = usage.replace(/ (?:--|\[options\]).*$/, '').replaceAll(/ [<[][^ ]*/g, '');
  const isList = paging.every(({ term }) => options.some((option) => option.term === term));
  const own = isList ? options.slice(paging.length) : options;
  const lines = [
    listOf([...positionals, ...own]),
    ...(isList ? ['- the options of every list'] : []),
    ...examples.map(({ term, meaning }) => `- Example: \`${term}\` (${escape(meaning)})`),
  ];
  const text = `${summary}.${epilogue === null ? '' : ` ${epilogue}`}`;
  return `## ${heading}\n\n${text} Usage: \`${usage}\`\n\n${lines.filter((line) => line !== '').join('\n')}`;
}

function listOf(terms: readonly Term[]): string {
  return terms.map(({ term, meaning }) => `- \`${term}\`: ${escape(meaning)}`).join('\n');
}

function escape(text: string): string {
  return text.replaceAll(/[<>*_]/g, String.raw`\$&`);
}
