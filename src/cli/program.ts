import yargs, { type Argv } from 'yargs';
import { version } from '../config/version.ts';
import { markOperands, readArguments, unmark } from './arguments.ts';
import { type Command, type CommandEntry, type GlobalOptions, nameOf, UsageError } from './command.ts';
import { commands } from './commands.ts';
import { exitCode } from './exit-code.ts';
import { type Output, processOutput } from './output.ts';

/** Runs one command line and gives its exit code; nothing is thrown. */
export async function runProgram(argv: readonly string[], output: Output = processOutput): Promise<number> {
  let code: number = exitCode.done;
  const note = noteOnce(output);
  const program = buildProgram(async (command, args) => {
    code = await command.run({ ...args, note }, output);
  });
  try {
    if (argv.length === 0) {
      output.print(await program.getHelp());
      return exitCode.usage;
    }
    // With a callback yargs hands over the text of help and version instead of printing it.
    await program.parseAsync(markOperands(argv), {}, (_error, _args, text) => {
      if (text !== '') output.print(text);
    });
    return code;
  } catch (error) {
    return explain(error, output);
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

type Run = (command: Command, args: Parameters<Command['run']>[0]) => Promise<void>;

function buildProgram(run: Run): Argv<GlobalOptions> {
  const program = yargs()
    .scriptName('latchkey')
    .usage('$0 <command>\n\nVerifies license keys and counts their uses beside your software.')
    .option('config', { type: 'string', requiresArg: true, describe: 'Configuration file' })
    .option('state-dir', { type: 'string', requiresArg: true, describe: 'Directory of the state' })
    .option('json', { type: 'boolean', describe: 'Print the answer as JSON' })
    .version(version)
    .help()
    .strict()
    .strictCommands()
    .recommendCommands()
    .demandCommand(1, 'A command is missing')
    .epilogue('An argument that begins with a dash is written after --, as in: latchkey verify -- -KEY-')
    .detectLocale(false)
    .updateStrings({ 'Did you mean %s?': 'Unknown command. Did you mean %s?' })
    .exitProcess(false)
    .parserConfiguration({ 'boolean-negation': false, 'dot-notation': false })
    .fail((message, error) => {
      // An error that a command threw comes without a message; a usage error may come without an error.
      throw error ?? new UsageError(message);
    });
  program.wrap(Math.min(100, program.terminalWidth() ?? 80));
  return register(program, commands, run);
}

function register(
  program: Argv<GlobalOptions>,
  entries: readonly CommandEntry[],
  run: Run,
): Argv<GlobalOptions> {
  for (const entry of entries) {
    const { usage, summary } = entry;
    if ('members' in entry) {
      const names = entry.members.map(nameOf).join(', ');
      program.command(usage, summary, (inner: typeof program) =>
        register(inner, entry.members, run).demandCommand(1, `${usage} needs a command: ${names}`),
      );
      continue;
    }
    const build = async (inner: typeof program): Promise<typeof program> => (await entry.load()).build(inner);
    // yargs awaits a builder's promise, but its types allow only synchronous builders.
    const builder = build as unknown as (inner: typeof program) => typeof program;
    program.command(usage, summary, builder, async (args) => {
      await run(await entry.load(), readArguments(args, usage));
    });
  }
  return program;
}

function explain(error: unknown, output: Output): number {
  const message = unmark(error instanceof Error ? error.message : String(error)).replaceAll(/\s*\n\s*/g, ' ');
  if (isMisuse(error)) {
    output.complain([`latchkey: ${message}`, 'See: latchkey --help']);
    return exitCode.usage;
  }
  output.complain([`latchkey: unexpected failure: ${message}`]);
  return exitCode.failed;
}

/** Usage errors are ours, or those that yargs throws itself. */
function isMisuse(error: unknown): boolean {
  return error instanceof UsageError || (error instanceof Error && error.name === 'YError');
}
