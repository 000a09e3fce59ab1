import { getAsset, isSea } from 'node:sea';

/** The entry points of threads, each a file of this folder. The single executable holds them as assets. */
export type WorkerName = 'backup-worker' | 'integrity-worker' | 'writer-worker';

/** Where the code of a thread is: beside this file, or within the single executable itself. */
export function workerFile(name: WorkerName): URL {
  // Only data: tells a worker that its text is a module.
  if (isSea()) return new URL(`data:text/javascript,${encodeURIComponent(getAsset(`${name}.js`, 'utf8'))}`);
  // The build has all of the program in one folder, and the same names there with another extension.
  return new URL(`./${name}${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
}
