import { type Configuration, effective } from '../../config/configuration.ts';
import { engineIn } from '../../config/engine.ts';
import { formatConfigError, formatKey } from '../../config/errors.ts';
import { leavesOf } from '../../config/file/tree.ts';
import { type Finding, warn } from '../../domain/finding.ts';
import { loadConfiguration } from '../../config/load.ts';
import { instanceOf } from '../client/endpoint.ts';
import { defineCommand } from '../command.ts';
import { configurationError, formatSource, toLoadOptions } from '../configuration.ts';
import { exitCode } from '../exit-code.ts';
import { formatEntries, formatFindings } from '../format.ts';

export const commands = [
  /** Works without a daemon. `--connect` only reads from the upstream or the database. */
  defineCommand({
    command: 'check',
    describe: 'List the errors of the configuration, one line each',
    builder: {
      connect: { type: 'boolean', describe: 'Also check the connection to the upstream, or to the database' },
    },
    examples: [['latchkey config check --connect', 'before a reload; changes nothing']],
    handler: async (args, output) => {
      const loaded = loadConfiguration(toLoadOptions(args));
      if (!loaded.ok) {
        if (!args.json) throw configurationError(loaded.errors);
        output.printJson(loaded);
        return exitCode.configuration;
      }
      const { file, configuration } = loaded;
      const unsafe = loaded.warnings.map((each) => warn(formatConfigError(each), 'correct it if you can'));
      const connected = args.connect === true ? await checkConnection(configuration) : [];
      const findings = [...unsafe, ...connected];
      const isOk = findings.every(({ level }) => level !== 'fail');
      const { role } = configuration;
      const lines = [`ok: ${formatSource(loaded)} (${role})`, formatFindings(findings)];
      const more = args.connect === true || findings.length > 0 ? { findings } : {};
      await output.result({ ok: isOk, file, role, ...more }, lines.join('\n').trimEnd());
      return isOk ? exitCode.done : exitCode.failed;
    },
  }),
  defineCommand({
    command: 'show',
    describe: 'Show the effective configuration, with secrets masked',
    builder: {},
    examples: [['latchkey config show --json', 'is a configuration file itself']],
    handler: async (args, output) => {
      const loaded = loadConfiguration(toLoadOptions(args));
      if (!loaded.ok) throw configurationError(loaded.errors);
      const tree = effective(loaded.configuration);
      const fields = leavesOf(tree).map(([path, value]) => [formatKey(path), String(value)] as const);
      return await output.result(tree, formatEntries(fields));
    },
  }),
];

async function checkConnection(configuration: Configuration): Promise<readonly Finding[]> {
  const engine = engineIn(configuration);
  if (engine !== null) return await engine.examine(configuration);
  const { examineUpstream } = await import('../../daemon/doctor/upstream.ts');
  return (await examineUpstream(configuration, instanceOf(configuration.stateDir))).findings;
}
