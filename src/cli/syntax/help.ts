import type { Chapter } from './chapter.ts';
import type { Term } from './declaration.ts';

/** Writes the help of a place for a terminal of so many columns. */
export function formatHelp(chapter: Chapter, columns: number): string {
  const { usage, summary, commands, operands, options, general, examples, epilogue } = chapter;
  const lists = {
    Commands: commands,
    Arguments: operands,
    Options: options,
    'General options': general,
    Examples: examples,
  };
  return [
    ...wrap(usage, columns),
    '',
    ...wrap(summary, columns),
    ...Object.entries(lists)
      .filter(([, terms]) => terms.length > 0)
      .flatMap(([title, terms]) => ['', `${title}:`, ...formatTerms(terms, columns)]),
    ...(epilogue === null ? [] : ['', ...wrap(epilogue, columns)]),
  ].join('\n');
}

/** A list in two columns; a meaning stands under a term that is too long for that. */
function formatTerms(terms: readonly Term[], columns: number): readonly string[] {
  const longest = Math.max(...terms.map(({ term }) => term.length));
  const width = Math.min(longest, Math.floor(columns / 2)) + 4;
  return terms.flatMap(({ term, meaning }) => {
    const [first = '', ...more] = wrap(meaning, Math.max(20, columns - width));
    const rest = more.map((line) => ' '.repeat(width) + line);
    if (first === '') return [`  ${term}`];
    if (term.length + 4 > width) return [`  ${term}`, ' '.repeat(width) + first, ...rest];
    return [`  ${term}`.padEnd(width) + first, ...rest];
  });
}

/** Breaks a text into lines of at most so many columns, where that can be. */
export function wrap(text: string, columns: number): readonly string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
