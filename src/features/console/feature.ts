import { commandLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';

/** A page for people who look after a daemon (`page/README.md`). */
export const console: Feature = {
  name: 'console',
  commands: [{ name: 'console', load: async () => (await import('./cli/console.ts')).command }],
  helpInstead: {
    'status doctor': commandLine('status console doctor', 'Show the state, also in a browser; find problems'),
  },
};
