import type { Clock, Digest, Random } from '../../../service/ports.ts';
import type { Awaitable } from '../../../service/tables.ts';
import type { Overview } from '../service/overview.ts';
import type { ConfigObject, DoctorObject } from '../wire/console.ts';
import type { ConsoleSession, ConsoleSessions } from './sessions.ts';

/** What the routes of the console depend on. */
export interface ConsoleParts {
  /** Null if the page is not served. */
  readonly desk: ConsoleDesk | null;
  /** What the first page shows. */
  overview(): Awaitable<Overview>;
  /** Examines this process as the command `doctor` does. */
  examine(): Promise<DoctorObject>;
  /** The effective configuration, with the source of each value. */
  settings(): Awaitable<ConfigObject>;
}

declare module '../../../http/app.ts' {
  interface App {
    readonly console: ConsoleParts;
  }
}

/** The sign-ins and sessions of the console. */
export interface ConsoleDesk {
  /** Loads them at the first use: most processes serve no page. */
  load(): Promise<ConsoleSessions>;
  /** The session of a token; null if there is none. */
  find(tokenDigest: string): ConsoleSession | null;
  /** The address of the page; null: it is not served. */
  url(): string | null;
  /** The options that a command needs to reach this process. */
  options(): readonly string[];
}

type Parts = {
  clock: Pick<Clock, 'now' | 'monotonic'>;
  random: Random;
  digest: Digest;
  /** The address of the listener; null: it does not listen yet. */
  address(): string | null;
  options(): readonly string[];
};

export function consoleDesk(parts: Parts): ConsoleDesk {
  let loading: Promise<void> | null = null;
  let sessions: ConsoleSessions | null = null;
  const load = async (): Promise<void> => {
    const module = await import('./sessions.ts');
    sessions = new module.ConsoleSessions(parts);
  };
  return {
    async load() {
      await (loading ??= load());
      if (sessions === null) throw new Error('the console was not loaded');
      return sessions;
    },
    options: () => parts.options(),
    find: (tokenDigest) => sessions?.find(tokenDigest) ?? null,
    url() {
      const address = parts.address();
      return address === null ? null : `${address}/console`;
    },
  };
}
