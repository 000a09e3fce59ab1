import { parentPort, workerData } from 'node:worker_threads';
import type { LocalLists, Reader } from '../../service/tables.ts';
import { longReadOn } from '../long-read.ts';
import { StorageError } from '../../service/ports.ts';
import { openReading } from '../../store/sqlite/connection.ts';
import { storageFault } from '../../store/sqlite/faults.ts';
import type { ReadResponse, ReadMessage, ReadRequest } from './reading-thread.ts';
import { outcomeMessage, type OutcomeMessage } from './worker.ts';

async function read(reader: Reader, request: ReadRequest): Promise<unknown> {
  if ('longRead' in request) return await longReadOn(reader)(request.longRead, request.asked as never);
  const { table, method, args } = request;
  const lists: LocalLists = reader;
  // The server's side has the same methods with the same types.
  const methods = lists[table] as Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
  return methods[method]?.(...args);
}

/** The outcome of a read. Only the fields of an error are sent to another thread. */
async function outcomeOf(reader: Reader, request: ReadRequest): Promise<OutcomeMessage> {
  try {
    return { result: await read(reader, request) };
  } catch (error) {
    const fault = storageFault(error);
    if (fault === null) return outcomeMessage({ error });
    return outcomeMessage({ error: new StorageError(fault === 'busy' ? 'unreadable' : fault, error) });
  }
}

if (parentPort !== null) {
  const port = parentPort;
  const { databasePath } = workerData as { databasePath: string };
  const { reader } = openReading(databasePath);
  const answer = async (text: string): Promise<void> => {
    const { id, request } = JSON.parse(text) as ReadMessage;
    port.postMessage(
      JSON.stringify({ id, outcome: await outcomeOf(reader, request) } satisfies ReadResponse),
    );
  };
  port.on('message', (text: string) => void answer(text));
}
