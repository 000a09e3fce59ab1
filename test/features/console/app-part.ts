import type { App, CoreApp } from '../../../src/http/app.ts';
import type { ConsoleParts } from '../../../src/features/console/http/desk.ts';

/** What the routes of the console depend on, in a process without its page in which nothing happens. */
export const silentConsole = (app: Pick<CoreApp, 'status'>): ConsoleParts => ({
  desk: null,
  overview: async () => ({
    ...(await app.status()),
    startedAt: Date.UTC(2026, 0, 1),
    options: [],
    currency: null,
    oldestAt: null,
    products: null,
    attention: [],
  }),
  examine: async () => ({ ok: true, findings: [] }),
  settings: () => ({ file: null, settings: [] }),
});

/** What this feature adds to the app of tests (support/app/http-app.ts). */
export function appPart(app: CoreApp): Partial<App> {
  return { console: silentConsole(app) };
}
