import { resolve } from 'node:path';
import { formatConfigError } from '../../../config/errors.ts';
import { loadConfiguration } from '../../../config/load.ts';
import { CommandError, defineCommand, textOption } from '../../../cli/command.ts';
import { configurationError, toLoadOptions } from '../../../cli/configuration.ts';
import { exitCode } from '../../../cli/exit-code.ts';
import { hintFor, startCommand } from '../../../cli/hint.ts';
import { startProgress } from '../../../cli/screen.ts';

export const commands = [
  defineCommand({
    command: 'move',
    describe: 'Copy an authority from its state directory to PostgreSQL, while no daemon runs',
    builder: {
      from: textOption('Backup to move instead of the state directory', 'file'),
      'to-file': textOption('File with the URL of the database; default: the configured one', 'file'),
    },
    examples: [
      [
        'latchkey store move --config /etc/latchkey/config.yaml',
        'to the database that the file names in store.postgres',
      ],
      [
        'latchkey store move --from latchkey-2026-02-22.db --to-file ./trial-database',
        'to try it, while the daemon keeps running',
      ],
    ],
    handler: async (args, output) => {
      const flags = args.toFile === undefined ? {} : { store: { postgres: { url_file: args.toFile } } };
      const loaded = loadConfiguration(toLoadOptions(args, flags));
      if (!loaded.ok) throw configurationError(loaded.errors);
      const { configuration, warnings } = loaded;
      const { postgres } = configuration.store;
      if (postgres === null) {
        const text = 'is missing: configure the database there, or pass a file with its URL by --to-file';
        throw configurationError([{ key: 'store.postgres', text, origin: 'default' }]);
      }
      if (warnings.length > 0)
        output.printError(warnings.map((warning) => `latchkey: ${formatConfigError(warning)}`));
      const daemon = await import('../daemon/move-store.ts');
      const bar = await startProgress(1);
      const moved = await daemon.moveStore({
        configuration,
        postgres,
        backup: args.from ?? null,
        onProgress: ({ table, isCheck, done, total }) => {
          bar?.setTotal(total);
          bar?.update(done, isCheck ? `checking ${table}` : table);
        },
      });
      bar?.stop();
      if (!moved.ok) {
        const [reason = '', ...rest] = moved.lines;
        const code = moved.isConfigured ? exitCode.configuration : exitCode.failed;
        throw new CommandError([`latchkey: ${reason}`, ...rest], code);
      }
      const { from, instance, tables } = moved;
      const counts = [...tables]
        .filter(([, { rows }]) => rows > 0)
        .map(([name, { rows }]) => `${rows} ${name}`);
      return await output.result(
        { from, schema: postgres.schema, instance, tables: Object.fromEntries(tables) },
        [
          `${from} is moved to the schema ${postgres.schema}, as the instance ${instance}.`,
          `Read back, and equal by count and SHA-256: ${counts.join(', ')}`,
          args.from === undefined
            ? 'The old state was not changed. Archive it; do not start it again.'
            : 'The backup was not changed. Changes after the backup are not in the database.',
          args.toFile === undefined
            ? `Start a node of the authority there: ${await startCommand(args, configuration.stateDir)}`
            : `Start a node of the authority there with store.postgres.url_file ${resolve(args.toFile)} in the configuration: ${hintFor({ ...args, config: args.config ?? 'FILE' })('serve')}`,
        ].join('\n'),
      );
    },
  }),
];
