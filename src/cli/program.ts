import { EnvironmentError } from '../config/errors.ts';
import { version } from '../config/version.ts';
import { oneLine } from '../domain/text.ts';
import { CommandError, globalOptions, nameOf, programOptions, UsageError } from './command.ts';
import {
  type Called,
  checkOptions,
  findCommand,
  knownOptions,
  parseArguments,
  splitLine,
} from './command-line.ts';
import { commands } from './commands.ts';
import { exitCode } from './exit-code.ts';
import { programName } from './hint.ts';
import { createJsonOutput, type Output, processOutput } from './output.ts';

/** Runs a command line and returns its exit code. Never throws. */
export async function runProgram(argv: readonly string[], output: Output = processOutput): Promise<number> {
  const { options } = splitLine(argv, { ...globalOptions, ...programOptions });
  if (options['json'] !== true) return await run(argv, output);
  const jsonOutput = createJsonOutput(output);
  const code = await run(argv, jsonOutput);
  jsonOutput.finish(code);
  return code;
}

async function run(argv: readonly string[], output: Output): Promise<number> {
  let called: Called = { words: [], found: null };
  try {
    const { words, options } = splitLine(argv, { ...globalOptions, ...programOptions });
    called = await findCommand(words, commands);
    if (options['help'] === true || argv.length === 0) {
      const { printHelp } = await import('./commands/help.ts');
      await printHelp(called, output);
      return argv.length === 0 ? exitCode.usage : exitCode.done;
    }
    const { found } = called;
    if (found !== null && 'handler' in found) {
      const args = await parseArguments(argv, called.words, found);
      return await found.handler({ ...args, warn: warnOnce(output) }, output);
    }
    checkOptions(argv, found === null ? knownOptions(null) : globalOptions);
    if (found !== null)
      throw new UsageError(`${found.command} needs a command: ${found.commands.map(nameOf).join(', ')}`);
    if (options['version'] !== true) throw new UsageError('A command is missing');
    return await output.result({ version }, version);
  } catch (error) {
    return printFailure(error, called, output);
  }
}

/** A command may look for its daemon several times. */
function warnOnce(output: Output): (line: string) => void {
  const printed = new Set<string>();
  return (line) => {
    if (!printed.has(line)) output.printError([line]);
    printed.add(line);
  };
}

function printFailure(error: unknown, { words }: Called, output: Output): number {
  const message = oneLine(error instanceof Error ? error.message : String(error));
  if (error instanceof UsageError) {
    const line = [programName(), ...(error.words ?? words)].join(' ');
    output.printError([`latchkey: ${message}`, `See: ${line} --help`]);
    return exitCode.usage;
  }
  if (error instanceof CommandError) {
    output.printError(error.lines, error.refusal);
    return error.code;
  }
  const isExpected = error instanceof EnvironmentError;
  output.printError([`latchkey: ${isExpected ? '' : 'unexpected failure: '}${message}`]);
  return exitCode.failed;
}
