import { EnvironmentError } from '../config/fault/environment-error.ts';
import { oneLine } from '../domain/text.ts';
import { nameOf, noteKey, UsageError } from './command.ts';
import { commands } from './commands.ts';
import { exitCode } from './exit-code.ts';
import { programName } from './hint.ts';
import { createJsonOutput } from './json-output.ts';
import { type Output, processOutput } from './output.ts';
import { readArguments } from './syntax/arguments.ts';
import { globalOptions, programOptions } from './syntax/global-options.ts';
import { findPlace, type Place, tokenize } from './syntax/place.ts';

/** Runs one command line and gives its exit code; nothing is thrown. */
export async function runProgram(argv: readonly string[], output: Output = processOutput): Promise<number> {
  const given = readGiven(argv);
  if (!given.has('json')) return await run(argv, given, output);
  const jsonOutput = createJsonOutput(output);
  const code = await run(argv, given, jsonOutput);
  jsonOutput.finish(code);
  return code;
}

/** Which options of the program itself are given, whatever the command is. */
function readGiven(argv: readonly string[]): ReadonlySet<string> {
  const tokens = tokenize(argv, new Map([...globalOptions, ...programOptions]));
  return new Set(
    tokens.flatMap((token) => (token.kind === 'option' && token.value !== 'false' ? [token.name] : [])),
  );
}

async function run(argv: readonly string[], given: ReadonlySet<string>, output: Output): Promise<number> {
  let place: Place = { words: [], entry: null };
  try {
    place = findPlace(argv, commands);
    if (given.has('help')) return await showHelp(place, given, output);
    if (place.entry === null) return await runWithoutCommand(argv, given, output);
    return await runCommand(argv, place, output);
  } catch (error) {
    return explain(error, place, output);
  }
}

/** A command may look for its daemon several times. */
function noteOnce(output: Output): (line: string) => void {
  const said = new Set<string>();
  return (line) => {
    if (!said.has(line)) output.complain([line]);
    said.add(line);
  };
}

/** `--version`, or no command at all. */
async function runWithoutCommand(
  argv: readonly string[],
  given: ReadonlySet<string>,
  output: Output,
): Promise<number> {
  const none = { options: programOptions, operands: new Map(), examples: [], epilogue: null };
  readArguments(argv, { words: [], usage: '', declaration: none });
  if (given.has('version')) {
    const { printVersion } = await import('./local/version.ts');
    return printVersion(given.has('json'), output);
  }
  if (argv.length > 0) throw new UsageError('A command is missing');
  await showHelp({ words: [], entry: null }, given, output);
  return exitCode.usage;
}

async function runCommand(argv: readonly string[], { words, entry }: Place, output: Output): Promise<number> {
  if (entry === null) return exitCode.usage;
  if ('members' in entry) {
    const names = entry.members.map(nameOf).join(', ');
    throw new UsageError(`${words.join(' ')} needs a command: ${names}`);
  }
  const { declaration, run: runIt } = await entry.load();
  const args = readArguments(argv, { words, usage: entry.usage, declaration });
  return await runIt({ ...args, [noteKey]: noteOnce(output) }, output);
}

async function showHelp(place: Place, given: ReadonlySet<string>, output: Output): Promise<number> {
  const { printHelp } = await import('./local/help.ts');
  return await printHelp(place, commands, { json: given.has('json'), output });
}

function explain(error: unknown, { words }: Place, output: Output): number {
  const message = oneLine(error instanceof Error ? error.message : String(error));
  if (error instanceof UsageError) {
    const line = [programName(), ...(error.words ?? words)].join(' ');
    output.complain([`latchkey: ${message}`, `See: ${line} --help`]);
    return exitCode.usage;
  }
  const isExpected = error instanceof EnvironmentError;
  output.complain([`latchkey: ${isExpected ? '' : 'unexpected failure: '}${message}`]);
  return exitCode.failed;
}
