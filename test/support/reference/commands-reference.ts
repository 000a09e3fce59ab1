import type { Term } from '../../../src/cli/command.ts';
import { commands } from '../../../src/cli/commands.ts';
import { type Page, readPages } from '../../../src/cli/reference.ts';

/** The options that commands share, then a list of the commands of each group, from their declarations. */
export async function commandsBook(): Promise<string> {
  const [program, ...pages] = await readPages(commands);
  const paging = pages.find(({ usage }) => usage.startsWith('latchkey account list'))?.options;
  if (program === undefined || paging === undefined) throw new Error('there is no program');
  const groups = pages.filter((page) => page.commands.length > 0);
  const below = (group: Page): readonly Page[] => {
    const words = group.usage.replace('<command>', '');
    const here = pages.filter((page) => page !== group && page.usage.startsWith(words));
    // A group in a group has a section of its own.
    const inner = here.filter((page) => page.commands.length > 0);
    return here.filter((page) => ![...inner, ...inner.flatMap(below)].includes(page));
  };
  const inGroups = new Set([...groups, ...groups.flatMap(below)]);
  const single = pages.filter((page) => !inGroups.has(page));
  const write = (page: Page): string => writeCommand(page, paging);
  return [
    `## Options without a command\n\n${listOf(program.options)}`,
    `## Options of every command\n\n${listOf(program.general)}`,
    `## Options of every list\n\n${listOf(paging)}`,
    `## Commands of one word\n\n${single.map(write).join('\n')}`,
    ...groups.map((group) => {
      const heading = group.usage.replace(' <command>', '');
      return `## ${heading}\n\n${group.summary}.\n\n${below(group).map(write).join('\n')}`;
    }),
  ].join('\n\n');
}

function writeCommand(page: Page, paging: readonly Term[]): string {
  const { usage, summary, positionals, options, examples, epilogue } = page;
  const isList = paging.every(({ term }) => options.some((option) => option.term === term));
  const own = isList ? options.slice(paging.length) : options;
  const lines = [
    ...[...positionals, ...own].map(itemOf),
    ...(isList ? ['- the options of every list'] : []),
    ...examples.map(({ term, meaning }) => `- Example: \`${term}\` (${escape(meaning)})`),
  ];
  const text = `${summary}.${epilogue === null ? '' : ` ${epilogue}`}`;
  return [`- **\`${usage}\`** ${escape(text)}`, ...lines.map((line) => `  ${line}`)].join('\n');
}

function listOf(terms: readonly Term[]): string {
  return terms.map(itemOf).join('\n');
}

function itemOf({ term, meaning }: Term): string {
  return `- \`${term}\`: ${escape(meaning)}`;
}

function escape(text: string): string {
  return text.replaceAll(/[<>*_]/g, String.raw`\$&`);
}
