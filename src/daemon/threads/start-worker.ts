import { getAsset, isSea } from 'node:sea';
import { Worker } from 'node:worker_threads';

/** The threads, by the names under which the system shows them. */
export type ThreadName = 'backup' | 'integrity' | 'reading' | 'writer';

/** Starts a thread, whose code is a file of this folder; the single executable holds it as an asset. */
export function startWorker(name: ThreadName, workerData: unknown): Worker {
  const file = `${name}-worker`;
  // Not as a `data:` URL: to decode one, Node loads V8's optimizing compiler, which takes 6 MiB.
  if (isSea()) return new Worker(getAsset(`${file}.js`, 'utf8'), { name, workerData, eval: true });
  // The build has all of the program in one folder, and the same names there with another extension.
  const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
  return new Worker(new URL(`./${file}${extension}`, import.meta.url), { name, workerData });
}
