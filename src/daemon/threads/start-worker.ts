import { getAsset, isSea } from 'node:sea';
import { Worker } from 'node:worker_threads';

/** The names of the threads, which the system shows. */
export type ThreadName = 'backup' | 'integrity' | 'reading' | 'writer';

/** Starts a thread. Its code is a file of this folder, or an asset of the single executable. */
export function startWorker(name: ThreadName, workerData: unknown): Worker {
  const file = `${name}-worker`;
  // Not a `data:` URL: to decode it, Node loads V8's optimizing compiler, which takes 6 MiB.
  if (isSea()) return new Worker(getAsset(`${file}.js`, 'utf8'), { name, workerData, eval: true });
  // In the npm package, the code of threads lies beside this module, with another extension.
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
  return new Worker(new URL(`./${file}${extension}`, import.meta.url), { name, workerData });
}
