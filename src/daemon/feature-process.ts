import type { Result } from '../domain/problem/problem.ts';
import { features } from '../features.ts';
import type { App, CoreApp } from '../http/app.ts';
import type { Status } from '../service/status.ts';
import type { Awaitable } from '../service/tables.ts';
import type { Daemon } from './daemon.ts';
import type { Role } from './role/role.ts';
import type { OpenedStore } from './store/opened-store.ts';

/** What a feature has in a process. */
export type FeatureProcess = {
  /** What its routes depend on. */
  readonly app?: Partial<App>;
  /** Runs its loops until the signal. Rejects if the process must end. */
  readonly run?: (signal: AbortSignal) => Promise<unknown>;
  /** What it knows of the status. */
  readonly status?: () => Awaitable<Partial<Status>>;
  /** Removes up to `limit` of its expired rows. Called again while there may be more. */
  readonly prune?: (times: PruneTimes) => Promise<Result<{ removed: number }>>;
  /** Tries again what it waits for, because the machine slept. */
  readonly onSleep?: () => void;
  /** Answers the requests that wait for something, because the process ends. */
  readonly stopWaiting?: () => void;
};

/** Epoch ms: now, surely reached, and from before which nothing can be needed any more. */
export type PruneTimes = { now: number; verifiedNow: number; removalTime: number; limit: number };

export type ProcessParts = OpenedStore & { role: Role; daemon: Daemon };

/** Starts what features and the role have in a process. */
export async function startFeatures(parts: ProcessParts): Promise<readonly FeatureProcess[]> {
  const started = await Promise.all(features.map(({ process: start }) => start?.(parts)));
  return [parts.role.process, ...started].filter((each) => each !== undefined);
}

/** Adds the parts of features to an app. */
export function withParts(app: CoreApp, processes: readonly FeatureProcess[]): App {
  // The compiler cannot see that the features of the list have all parts that features add to the type.
  return Object.assign({}, app, ...processes.map(({ app: parts }) => parts)) as App;
}
