import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { runProcess, type Outcome } from '../process/command-line.ts';

/** Runs a command line as a separate process, as the operator of the daemon in this directory. */
export function operate(directory: string, ...argv: string[]): Promise<Outcome> {
  return runProcess([...argv, '--state-dir', join(directory, 'state')]);
}

/** The audit entries in this directory, in order: action and object. */
export function recordIn(directory: string): string[] {
  using database = new DatabaseSync(join(directory, 'state', 'latchkey.db'), { readOnly: true });
  const rows = database.prepare('SELECT action AS act, subject FROM audit_event ORDER BY id').all();
  return rows.map(({ act, subject }) => `${String(act)} ${String(subject)}`);
}
