import type { Log } from './ports.ts';
import type { Awaitable } from './tables.ts';

/**
 * Runs the steps after a commit. If a step fails, the change stays: the failure is logged, and the caller gets
 * `otherwise`.
 */
export async function afterCommit<Value, Otherwise = Value>(
  log: Pick<Log, 'error'>,
  steps: () => Awaitable<Value>,
  otherwise: Otherwise,
): Promise<Value | Otherwise> {
  try {
    return await steps();
  } catch (error) {
    log.error({ err: error }, 'a change was committed, but a later step failed');
    return otherwise;
  }
}
