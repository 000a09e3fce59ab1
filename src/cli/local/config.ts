import type { Configuration } from '../../config/configuration.ts';
import { formatKey } from '../../config/fault/fault.ts';
import type { Finding } from '../../config/fault/finding.ts';
import { loadConfiguration } from '../../config/load.ts';
import { effective } from '../../config/show.ts';
import { leavesOf, type Tree } from '../../config/file/tree.ts';
import { type Command, defineCommand } from '../command.ts';
import { instanceOf } from '../client/endpoint.ts';
import { exitCode } from '../exit-code.ts';
import { formatFindings } from '../finding.ts';
import { formatFields } from '../format.ts';
import { formatSource, reportFaults, toLoadOptions } from '../configuration.ts';

/** `config check`: works without a daemon; `--connect` asks the upstream or the database too, and changes nothing there. */
export const checkConfig: Command = defineCommand(
  (syntax) =>
    syntax
      .option('connect', {
        type: 'boolean',
        describe: 'Also check the connection to the upstream, or to the database',
      })
      .example('latchkey config check --connect', 'before a reload; changes nothing there'),
  async (args, output) => {
    const loaded = loadConfiguration(toLoadOptions(args));
    if (!loaded.ok) {
      if (!args.json) return reportFaults(loaded.faults, output);
      output.printJson(loaded);
      return exitCode.configuration;
    }
    const { file, configuration } = loaded;
    const findings = args.connect === true ? await examineWay(configuration) : [];
    const isWell = findings.every(({ level }) => level !== 'fail');
    if (args.json) {
      const said = args.connect === true ? { findings } : {};
      output.printJson({ ok: isWell, file, role: configuration.role, ...said });
    } else {
      output.print(`ok: ${formatSource(loaded)} (${configuration.role})`);
      if (findings.length > 0) output.print(formatFindings(findings));
    }
    return isWell ? exitCode.done : exitCode.failed;
  },
);

async function examineWay(configuration: Configuration): Promise<readonly Finding[]> {
  if (configuration.store.postgres !== null) {
    const { examineDatabase } = await import('../../daemon/doctor/database.ts');
    return await examineDatabase(configuration);
  }
  const { examineUpstream } = await import('../../daemon/doctor/upstream.ts');
  return (await examineUpstream(configuration, instanceOf(configuration.stateDir))).findings;
}

/** `config show`: works without a daemon. */
export const showConfig: Command = defineCommand(
  (syntax) => syntax.example('latchkey config show --json', 'is a configuration file itself'),
  async (args, output) => {
    const loaded = loadConfiguration(toLoadOptions(args));
    if (!loaded.ok) return reportFaults(loaded.faults, output);
    const tree = effective(loaded.configuration);
    if (args.json) output.printJson(tree);
    else await output.show(formatFields(byKey(tree)));
    return exitCode.done;
  },
);

/** Each value by its full path, as faults name it. */
function byKey(tree: Tree): Readonly<Record<string, string>> {
  return Object.fromEntries(leavesOf(tree).map(([path, value]) => [formatKey(path), String(value)]));
}
