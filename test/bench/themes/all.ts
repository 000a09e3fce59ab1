import type { Theme } from '../theme.ts';
import { agentsTheme } from './agents.ts';
import { awayTheme } from './away.ts';
import { boundsTheme } from './bounds.ts';
import { commandsTheme } from './commands.ts';
import { deliveryTheme } from './delivery.ts';
import { drainTheme } from './drain.ts';
import { eachOnceTheme } from './each-once.ts';
import { guessesTheme } from './guesses.ts';
import { importTheme } from './import.ts';
import { latencyTheme } from './latency.ts';
import { leasesTheme } from './leases.ts';
import { memoryTheme } from './memory.ts';
import { millionTheme } from './million.ts';
import { readsTheme } from './reads.ts';
import { slowDiskTheme } from './slow-disk.ts';
import { postgresTheme } from './postgres.ts';
import { soakTheme } from './soak.ts';
import { startTheme } from './start.ts';
import { statusTheme } from './status.ts';
import { useTheme } from './use.ts';
import { verifyTheme } from './verify.ts';

/** Every theme, in the order of the table. A new theme is a file in this folder and a name in this list. */
export const themes: readonly Theme[] = [
  verifyTheme,
  latencyTheme,
  awayTheme,
  slowDiskTheme,
  guessesTheme,
  useTheme,
  drainTheme,
  deliveryTheme,
  millionTheme,
  eachOnceTheme,
  startTheme,
  memoryTheme,
  importTheme,
  statusTheme,
  leasesTheme,
  agentsTheme,
  postgresTheme,
  boundsTheme,
  soakTheme,
  readsTheme,
  commandsTheme,
];
