import { locateDaemon } from '../../config/load.ts';
import { CommandError, defineCommand, positional } from '../command.ts';
import { configurationError, toLoadOptions } from '../configuration.ts';
import { hintFor, startCommand } from '../hint.ts';
import { counted } from '../../domain/text.ts';

export const command = defineCommand({
  command: 'restore <file>',
  describe: 'Restore a backup, while no daemon runs',
  builder: { file: positional('File made by latchkey backup', 'file') },
  examples: [
    [
      'latchkey restore latchkey-2026-02-22.db',
      'as a new instance, which checks the upstream before it sends changes',
    ],
  ],
  handler: async (args, output) => {
    const located = locateDaemon(toLoadOptions(args));
    if (!located.ok) throw configurationError(located.errors);
    const { stateDir, hasDatabase, hasUpstream } = located.location;
    if (hasDatabase) {
      const moving = hintFor(args)(`store move --from ${args.file}`);
      throw new CommandError([
        `latchkey: the records are in PostgreSQL (store.postgres), not in ${stateDir}: restore a dump of the database with pg_restore, or move this backup into an empty schema: ${moving}`,
        'Nothing was changed.',
      ]);
    }
    const { restoreBackup } = await import('../../daemon/store/restore.ts');
    const restored = await restoreBackup(args.file, stateDir);
    if (!restored.ok) throw new CommandError([`latchkey: ${restored.reason}`, 'Nothing was changed.']);
    const { instance, role, unfinished, kept } = restored;
    const lines = [
      `${args.file} is restored into ${stateDir}, as a new instance: ${instance}`,
      ...(kept === null ? [] : [`The previous database is kept as ${kept}`]),
      unfinished === 0
        ? 'No change in it waits for the upstream.'
        : `${counted(unfinished, 'change in it is', 'changes in it are')} not finished: each is read back from the upstream before any is sent.`,
      role === 'agent' && !hasUpstream
        ? `Start it with its upstream and products in the configuration: ${hintFor({ ...args, config: args.config ?? 'FILE' })('serve')}`
        : `Start it: ${startCommand(args, stateDir)}`,
    ];
    return await output.result({ state_dir: stateDir, instance, unfinished, kept }, lines.join('\n'));
  },
});
