import { locateDaemon } from '../../config/load.ts';
import { type Command, defineCommand, operand } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { hintFor } from '../hint.ts';
import { reportFaults, toLoadOptions } from '../configuration.ts';
import { startCommand } from '../start-command.ts';
import { counted } from '../../domain/text.ts';

/** `restore`: replaces the files, which no daemon may be using. */
export const restoreCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .positional('file', operand('File made by latchkey backup', 'file'))
      .example(
        'latchkey restore latchkey-2026-02-22.db',
        'as a new instance, which reads back before it sends',
      ),
  async (args, output) => {
    const found = locateDaemon(toLoadOptions(args));
    if (!found.ok) return reportFaults(found.faults, output);
    const { stateDir, hasDatabase, hasUpstream } = found.location;
    if (hasDatabase) {
      const moving = hintFor(args)(`store move --from ${args.file}`);
      output.complain([
        `latchkey: the records are in PostgreSQL (store.postgres), not in ${stateDir}: put a dump of it back by pg_restore, or this backup into an empty schema by: ${moving}`,
        'Nothing was changed.',
      ]);
      return exitCode.failed;
    }
    const { restoreBackup } = await import('../../daemon/store/restore.ts');
    const restored = await restoreBackup(args.file, stateDir);
    if (!restored.ok) {
      output.complain([`latchkey: ${restored.reason}`, 'Nothing was changed.']);
      return exitCode.failed;
    }
    const { instance, role, unfinished, kept } = restored;
    if (args.json) output.printJson({ state_dir: stateDir, instance, unfinished, kept });
    else {
      const lines = [
        `${args.file} is restored into ${stateDir}, as a new instance: ${instance}`,
        ...(kept === null ? [] : [`The database that was there is kept as ${kept}`]),
        unfinished === 0
          ? 'No change in it waits for the upstream.'
          : `${counted(unfinished, 'change in it is', 'changes in it are')} not finished: each is read back from the upstream before any is sent.`,
        role === 'agent' && !hasUpstream
          ? `Start it with its upstream and products in the configuration: ${hintFor({ ...args, config: args.config ?? 'FILE' })('serve')}`
          : `Start it: ${startCommand(args, stateDir)}`,
      ];
      output.print(lines.join('\n'));
    }
    return exitCode.done;
  },
);
