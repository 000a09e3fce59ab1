import { commandGroup, helpLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';

/** An authority on PostgreSQL, which several processes can share; and the move of an authority to it. */
export const postgres: Feature = {
  name: 'postgres',
  engine: {
    section: ['store', 'postgres'],
    place: 'PostgreSQL (store.postgres)',
    restoring: (file, hint) =>
      `restore a dump of the database with pg_restore, or move this backup into an empty schema: ${hint(`store move --from ${file}`)}`,
    open: async (...opening) => (await import('./daemon/shared-store.ts')).openSharedStore(...opening),
    examine: async (configuration) =>
      (await import('./daemon/examine-database.ts')).examineDatabase(configuration),
  },
  commands: [commandGroup('store', 'Move an authority to a database', () => import('./cli/store.ts'))],
  replacedHelp: { state: helpLine('state store', 'Show what the state has; move it to a database') },
};
