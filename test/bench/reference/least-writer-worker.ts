/**
 * The thread of `least-writer.ts`. It has a table of licenses, and a table of operations with one index for due
 * operations and one for the first of a queue. It writes everything that has arrived in one transaction.
 */
import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { licenseKeyOf } from '../sample.ts';
import type { LeastCommand, LeastOptions } from './least-writer.ts';

const { file, licenses, hasOutbox } = workerData as LeastOptions;
const database = new DatabaseSync(file);
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE license (license_key TEXT PRIMARY KEY NOT NULL, uses INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE outbox (seq INTEGER PRIMARY KEY, subject TEXT NOT NULL, state TEXT NOT NULL, next_at INTEGER) STRICT;
  CREATE INDEX outbox_lane ON outbox (subject) WHERE state = 'pending' OR state = 'in_flight';
  CREATE INDEX outbox_due ON outbox (next_at) WHERE next_at IS NOT NULL;
  BEGIN`);
const addLicense = database.prepare('INSERT INTO license (license_key, uses) VALUES (?, 0)');
for (let number = 0; number < licenses; number += 1) addLicense.run(licenseKeyOf(number));
database.exec('COMMIT');

const begin = database.prepare('BEGIN IMMEDIATE');
const commit = database.prepare('COMMIT');
const count = database.prepare('UPDATE license SET uses = uses + 1 WHERE license_key = ? RETURNING uses');
const enqueue = database.prepare("INSERT INTO outbox (subject, state, next_at) VALUES (?, 'pending', ?)");
const send = database.prepare(
  `UPDATE outbox SET state = 'in_flight', next_at = NULL
   WHERE seq = (SELECT min(seq) FROM outbox WHERE subject = ? AND (state = 'pending' OR state = 'in_flight'))
   RETURNING seq`,
);
const deliver = database.prepare("UPDATE outbox SET state = 'delivered' WHERE seq = ?");
const confirm = database.prepare('UPDATE license SET uses = ? WHERE license_key = ?');

/** Gives the count after a use, and the operation to send. */
function run(command: LeastCommand): number {
  switch (command.name) {
    case 'use': {
      const row = count.get(command.licenseKey);
      if (hasOutbox) enqueue.run(command.licenseKey, Date.now());
      return Number(row?.['uses']);
    }
    case 'send':
      return Number(send.get(command.licenseKey)?.['seq']);
    case 'answer':
      deliver.run(command.seq);
      confirm.run(command.uses, command.licenseKey);
      return command.seq;
    default:
      return command satisfies never;
  }
}

const port = parentPort;
port?.on('message', (first: string) => {
  const commands = JSON.parse(first) as LeastCommand[];
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
    commands.push(...(JSON.parse(next.message as string) as LeastCommand[]));
  }
  begin.run();
  const results = commands.map((command) => run(command));
  commit.run();
  port.postMessage(JSON.stringify(results));
});
