import { rmSync } from 'node:fs';
import { makeTemporary } from '../system/temporary-directory.ts';

/** A directory that is removed on dispose, or with the process. */
export type TemporaryDirectory = Disposable & { path: string };

/** Makes an empty directory whose name begins with a prefix. */
export function makeTemporaryDirectory(prefix: string): TemporaryDirectory {
  const path = makeTemporary(prefix);
  // Threads that still write may put a file into it meanwhile.
  const remove = (): void => rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  // Nothing is disposed of where a process exits, as it does once nobody reads its output any more.
  process.once('exit', remove);
  return {
    path,
    [Symbol.dispose]: () => {
      process.off('exit', remove);
      remove();
    },
  };
}
