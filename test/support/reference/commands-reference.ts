import type { Term } from '../../../src/cli/command.ts';
import { commands } from '../../../src/cli/commands.ts';
import { type Page, readPages } from '../../../src/cli/reference.ts';

/** A heading and tables for each command, from its declaration. */
export async function commandsBook(): Promise<string> {
  const [program, ...pages] = await readPages(commands);
  if (program === undefined) throw new Error('there is no program');
  return [
    `## Options without a command\n\n${tableOf(program.options)}`,
    `## Options of every command\n\n${tableOf(program.general)}`,
    ...pages.filter((page) => page.commands.length === 0).map(write),
  ].join('\n\n');
}

function write({ usage, summary, positionals, options, examples, epilogue }: Page): string {
  const heading = usage.replace(/ (?:--|\[options\]).*$/, '').replaceAll(/ [<[][^ ]*/g, '');
  const taken = [...positionals, ...options];
  return [
    `## ${heading}`,
    `${summary}.${epilogue === null ? '' : ` ${epilogue}`}`,
    `\`\`\`text\n${usage}\n\`\`\``,
    ...(taken.length === 0 ? [] : [tableOf(taken)]),
    examples.map(({ term, meaning }) => `- \`${term}\`: ${escape(meaning)}`).join('\n'),
  ].join('\n\n');
}

function tableOf(terms: readonly Term[]): string {
  const rows = terms.map(
    ({ term, meaning }) => `| \`${term.replaceAll('|', String.raw`\|`)}\` | ${escape(meaning)} |`,
  );
  return ['| what is given | what it means |', '| - | - |', ...rows].join('\n');
}

function escape(text: string): string {
  return text.replaceAll(/[|<>*_]/g, String.raw`\$&`);
}
