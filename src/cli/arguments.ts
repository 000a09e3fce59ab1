import { UsageError } from './command.ts';

/*
 * yargs reads a positional argument twice, the second time without the `--` that stood before it,
 * so that a license key such as `-K` or `--help` would count as an option. No argument of a process
 * can contain the mark.
 */
const mark = '\0';

/** Marks what stands after `--`, so that none of it is read as an option. */
export function markOperands(argv: readonly string[]): string[] {
  const end = argv.indexOf('--');
  return end === -1 ? [...argv] : [...argv.slice(0, end), ...argv.slice(end + 1).map((word) => mark + word)];
}

/** Takes the marks out of a text. */
export function unmark(text: string): string {
  return text.replaceAll(mark, '');
}

/** Takes the marks out of parsed arguments; refuses an option that is given twice, of which yargs makes a list. */
export function readArguments<Parsed extends object>(parsed: Parsed, usage: string): Parsed {
  const variadic = /(\w+)\.\./.exec(usage)?.[1];
  refuseBlankOperands(parsed, usage);
  const read = Object.entries(parsed).map(([name, value]: [string, unknown]) => {
    if (!Array.isArray(value)) return [name, typeof value === 'string' ? unmark(value) : value];
    if (name === '_' || name === variadic) return [name, value.map((item) => unmark(String(item)))];
    throw new UsageError(`--${name} is given twice`);
  });
  return Object.fromEntries(read) as Parsed;
}

/** An operand of white space alone is a variable of a shell script that was not set: it must name nothing. */
function refuseBlankOperands(parsed: object, usage: string): void {
  const values = new Map<string, unknown>(Object.entries(parsed));
  for (const [, name = ''] of usage.matchAll(/[<[](\w+)/g)) {
    for (const value of [values.get(name)].flat()) {
      if (typeof value === 'string' && unmark(value).trim() === '')
        throw new UsageError(`<${name}> is empty`);
    }
  }
}
