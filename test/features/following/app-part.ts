import { systemRandom } from '../../../src/daemon/system/machine.ts';
import { lazyChangeFeed } from '../../../src/features/following/daemon/process.ts';
import type { App, CoreApp } from '../../../src/http/app.ts';
import { silent } from '../../support/silent-log.ts';

/** What this feature adds to the app of tests (support/app/http-app.ts). A wait of a minute takes 6 ms. */
export function appPart({ role, reader, writer, changes }: CoreApp): Partial<App> {
  if (role !== 'authority') return { changeFeed: null };
  const clock = {
    now: () => Date.now(),
    monotonic: () => performance.now() * 10_000,
    sleep: () => new Promise<void>((resolve) => void setImmediate(resolve)),
  };
  const changeFeed = lazyChangeFeed({ reader, writer, changes, clock, random: systemRandom, log: silent });
  return { changeFeed };
}
