import { join } from 'node:path';
import type { Activation } from '../../../../src/features/leases/domain/lease.ts';
import { openWriting } from '../../../../src/store/sqlite/connection.ts';

/** Adds activations to the SQLite store of an authority, whose daemon may be running. */
export function storeActivations(stateDir: string, activations: readonly Activation[]): void {
  using writing = openWriting(join(stateDir, 'latchkey.db'));
  for (const activation of activations) writing.transaction.activations.put(activation);
}
