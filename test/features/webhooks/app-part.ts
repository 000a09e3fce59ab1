import type { App, CoreApp } from '../../../src/http/app.ts';
import { lazySender } from './support/webhooks.ts';

/** What this feature adds to the app of tests (support/app/http-app.ts). */
export function appPart({ role, reader, writer }: CoreApp): Partial<App> {
  return { webhooks: role === 'holder' ? null : lazySender({ reader, writer }), storeEvents: null };
}
