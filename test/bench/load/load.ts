import { join } from 'node:path';
import { output, processorTime } from '../process.ts';
import type { Job, LoadResult } from './job.ts';
import { runWrk } from './wrk.ts';

const ownGenerator = join(import.meta.dirname, 'generator.ts');

/** The result of a load, and the processor time of the server. */
export type Measured = LoadResult & {
  readonly connections: number;
  readonly perSecond: number;
  /** Processor time of all threads of the server per request, in µs. Null: unknown. */
  readonly processorMicros: number | null;
  /** The processors that the server used or waited for. Below 1 the server was not the limit. Null: unknown. */
  readonly busy: number | null;
};

/** Puts a server under load from another process. Throws if a request failed. */
export async function load(pid: number, job: Job): Promise<Measured> {
  const before = processorTime(pid);
  const result = (await runWrk(job)) ?? (await runOwn(job));
  const after = processorTime(pid);
  if (result.failures > 0) throw new Error(`${result.failures} of ${result.requests} requests failed`);
  if (result.requests === 0) throw new Error('no request was answered');
  const used = before === null || after === null ? null : after.used - before.used;
  const waited = before === null || after === null ? 0 : after.waited - before.waited;
  return {
    ...result,
    connections: job.connections,
    perSecond: result.requests / result.seconds,
    processorMicros: used === null ? null : (used * 1000) / result.requests,
    busy: used === null ? null : (used + waited) / 1000 / result.seconds,
  };
}

async function runOwn(job: Job): Promise<LoadResult> {
  return JSON.parse(await output([process.execPath, ownGenerator, JSON.stringify(job)])) as LoadResult;
}
