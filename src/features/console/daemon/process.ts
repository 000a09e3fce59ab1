import type { Configuration } from '../../../config/configuration.ts';
import { isLoopback } from '../../../config/value/address.ts';
import type { ProcessParts } from '../../../daemon/compose.ts';
import type { FeatureProcess } from '../../../daemon/feature-process.ts';
import { sha256, systemRandom } from '../../../daemon/system/machine.ts';
import { type ConsoleParts, consoleDesk } from '../http/desk.ts';
import { optionsFor } from './options.ts';
import { recordMinutes, type RecorderParts } from './series-recorder.ts';

/** What a process has for the console. Most of the code is loaded at the first use. */
export async function consoleProcess(parts: ProcessParts): Promise<FeatureProcess> {
  const { clock, current, daemon, writer } = parts;
  const isServed = isConsoleServed(current.configuration);
  const address = (): string | null => daemon.addresses.tcp;
  const desk = isServed
    ? consoleDesk({
        clock,
        random: systemRandom,
        digest: sha256,
        address,
        options: () => optionsFor(current),
      })
    : null;
  return {
    app: { console: { desk, ...viewsOf(parts) } },
    page: isServed ? (await import('../http/page.ts')).consolePage : null,
    run: (signal) => recordMinutes(recorderParts(parts), signal),
    prune: ({ now, verifiedNow }) => writer.write('pruneSeries', { now, verifiedNow }),
  };
}

/** Whether a process serves the page: never to other machines, and not on a holder. */
export function isConsoleServed({
  role,
  console: { enabled },
  listen: { tcp },
}: Pick<Configuration, 'role' | 'console' | 'listen'>): boolean {
  return enabled && role !== 'holder' && tcp.length > 0 && tcp.every(({ host }) => isLoopback(host));
}

function viewsOf(parts: ProcessParts): Pick<ConsoleParts, 'overview' | 'examine' | 'settings'> {
  const { clock, current, daemon } = parts;
  const startedAt = clock.now();
  let examining: ReturnType<ConsoleParts['examine']> | null = null;
  return {
    async overview() {
      const { overviewOf } = await import('./overview.ts');
      return await overviewOf(parts, await daemon.status(), startedAt);
    },
    async examine() {
      const { examineSelf } = await import('./examination.ts');
      // One at a time: requests that arrive meanwhile get the same findings.
      examining ??= examineSelf(parts, daemon).finally(() => {
        examining = null;
      });
      return await examining;
    },
    async settings() {
      const { settingsOf } = await import('./settings.ts');
      return settingsOf(current);
    },
  };
}

/** What each minute of the series is made of. */
function recorderParts({ writer, clock, metrics, local, role: { upstream } }: ProcessParts): RecorderParts {
  return {
    writer,
    clock,
    totals: () => metrics.totals(),
    upstream: () => upstream?.status().state ?? null,
    outbox: () => {
      if (upstream === null || local === null) return null;
      const { operations } = local.reader;
      const { pending, in_flight: inFlight, uncertain } = operations.depth();
      return { pending: pending + inFlight + uncertain, oldestAt: operations.oldestAt() };
    },
  };
}
