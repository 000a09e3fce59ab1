import { helpLine } from '../../cli/command.ts';
import type { Feature } from '../../feature.ts';

/** A temporary store with an agent, to try things out and to test other programs with (`latchkey/testing`). */
export const sandbox: Feature = {
  name: 'sandbox',
  needs: ['leases', 'console'],
  commands: [
    { name: 'demo', load: async () => (await import('./commands.ts')).demo },
    { name: 'sandbox', load: async () => (await import('./commands.ts')).sandbox },
  ],
  help: { Run: [helpLine('demo sandbox', 'See what it does; run a temporary store to try it')] },
};
