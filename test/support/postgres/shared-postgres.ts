import type { TestProject } from 'vitest/node';
import type { DatabaseAddress } from '../../../src/features/postgres/store/client.ts';
import { startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server that all files of a project share. Its data is temporary. */
    postgres: DatabaseAddress | undefined;
  }
}

/** Runs once before the files of a project, and stops the server after them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres({ isDurable: false });
  project.provide('postgres', server.address);
  return async () => {
    await server[Symbol.asyncDispose]();
  };
}
