import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres.ts';

/** Runs once before the files of a project, and stops the server after them. Its data is temporary. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres({ isDurable: false });
  const module = new URL('engine.ts', import.meta.url).pathname;
  project.provide('engine', { module, server: server.address });
  return async () => {
    await server[Symbol.asyncDispose]();
  };
}
