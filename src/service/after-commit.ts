import type { Log } from './ports.ts';
import type { Awaitable } from './tables.ts';

/**
 * Runs the steps that follow a committed change. No failure of these steps undoes the change, so the failure is logged,
 * and `otherwise` is the value for the caller.
 */
export async function afterCommit<Value, Otherwise = Value>(
  log: Pick<Log, 'error'>,
  steps: () => Awaitable<Value>,
  otherwise: Otherwise,
): Promise<Value | Otherwise> {
  try {
    return await steps();
  } catch (error) {
    log.error({ err: error }, 'a change was made, but a step after its commit failed');
    return otherwise;
  }
}
