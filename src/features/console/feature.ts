import { helpLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';
import { noLocks } from '../../service/locks.ts';
import { tables } from './store/series.ts';

/** A page for people who look after a daemon (`page/README.md`). */
export const console: Feature = {
  name: 'console',
  routes: async () => {
    const [{ overviewRoutes }, { consoleRoutes }] = await Promise.all([
      import('./http/overview.ts'),
      import('./http/routes.ts'),
    ]);
    return [...overviewRoutes, ...consoleRoutes];
  },
  useCases: {
    load: () => import('./service/use-cases.ts'),
    locks: { pruneSeries: noLocks, recordConsoleAct: noLocks, recordSeries: noLocks },
    byOneNode: { pruneSeries: { ok: true, value: { removed: 0 } } },
    essential: ['pruneSeries'],
  },
  tables,
  process: async (parts) => (await import('./daemon/process.ts')).consoleProcess(parts),
  commands: [{ name: 'console', load: async () => (await import('./cli/console.ts')).command }],
  replacedHelp: {
    'status doctor': helpLine('status console doctor', 'Show the state, also in a browser; find problems'),
  },
};
