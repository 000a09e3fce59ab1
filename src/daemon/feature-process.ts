import type { Result } from '../domain/problem/problem.ts';
import type { App } from '../http/app.ts';
import type { WebPage } from '../http/web-page.ts';
import type { Status } from '../service/status.ts';
import type { Awaitable } from '../service/tables.ts';

/** What a feature has in a process. */
export type FeatureProcess = {
  /** What its routes depend on. */
  readonly app?: Partial<App>;
  /** The page for people that it has; null: none as it is configured. */
  readonly page?: WebPage | null;
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
