import { join } from 'node:path';
import { output } from './process.ts';
import type { LoopOptions } from './reference/undici-loop.ts';

const loop = join(import.meta.dirname, 'reference/undici-loop.ts');

/** Runs the bare loop over undici and gives its uses per second. Without a file the loop stores nothing. */
export async function runLoop(options: Omit<LoopOptions, 'file'> & { file?: string }): Promise<number> {
  const all: LoopOptions = { file: null, ...options };
  return Number(await output([process.execPath, loop, JSON.stringify(all)]));
}
