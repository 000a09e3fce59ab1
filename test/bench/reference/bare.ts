/**
 * The reference server: `node:http` with the minimal verify and use. It checks the secret, looks into a Map, and writes
 * JSON. A use adds one in the Map, in its own SQLite transaction that is as durable as Latchkey's, or in a writing
 * thread. The server is also the upstream of agents, and counts their uses.
 * `node bare.ts OPTIONS` prints its addresses as JSON.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { licenseKeyOf, secret } from '../sample.ts';
import { LeastWriter, type LeastOptions } from './least-writer.ts';

export type BareOptions = {
  /** The number of license keys, from number 0. */
  readonly licenses: number;
  /** A Unix socket to listen on, in addition to TCP. */
  readonly socket: string | null;
  /** A new database file for uses. Null: uses are kept in memory. */
  readonly database: string | null;
  /** The database file of the writing thread. Null: there is no thread. */
  readonly writer: Omit<LeastOptions, 'licenses'> | null;
  /** Takes requests and never answers. */
  readonly hangs: boolean;
};

/** The response of `GET /uses`: the number of uses since `DELETE /uses`, and the first and last time in ms. */
export type UsesSeen = { count: number; firstAt: number; lastAt: number };

type License = { license_key: string; uses: number } & Record<string, unknown>;

const options = JSON.parse(process.argv[2] ?? '') as BareOptions;
const licenses = new Map<string, License>();
for (let number = 0; number < options.licenses; number += 1) {
  const license_key = licenseKeyOf(number);
  licenses.set(license_key, {
    license_key,
    enabled: true,
    product_link: 'bench',
    buyer_email: 'buyer@example.com',
    uses: 0,
    date: '2026-01-01T00:00:00+00:00',
  });
}
const addUse = options.database === null ? addUseInMemory : transactionEach(options.database);
const writer = options.writer && new LeastWriter({ ...options.writer, licenses: options.licenses });
const seen: UsesSeen = { count: 0, firstAt: 0, lastAt: 0 };

const serve = (request: IncomingMessage, response: ServerResponse): void => {
  if (options.hangs) return;
  if (request.url === '/uses') {
    if (request.method === 'DELETE') seen.count = 0;
    answer(response, 200, seen);
    return;
  }
  if (request.headers['product-secret-key'] !== secret) {
    answer(response, 401, { error: 'Unauthorized' });
    return;
  }
  if (request.method === 'GET') {
    const url = request.url ?? '';
    answerLicense(response, licenses.get(url.slice(url.indexOf('license_key=') + 12)));
    return;
  }
  let body = '';
  request.setEncoding('latin1');
  request.on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    const key = new URLSearchParams(body).get('license_key') ?? '';
    seen.count += 1;
    seen.lastAt = performance.now();
    if (seen.count === 1) seen.firstAt = seen.lastAt;
    if (writer === null) answerLicense(response, addUse(key));
    else void answerWritten(response, key, writer);
  });
};

const tcp = createServer(serve).listen(0, '127.0.0.1');
const servers = [tcp];
if (options.socket !== null) servers.push(createServer(serve).listen(options.socket));
for (const server of servers) server.keepAliveTimeout = 60_000;
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))));
process.stdout.write(`${JSON.stringify({ port: (tcp.address() as AddressInfo).port })}\n`);

function answerLicense(response: ServerResponse, license: License | undefined): void {
  if (license === undefined) answer(response, 404, { error: 'Not Found' });
  else answer(response, 200, { data: license });
}

async function answerWritten(response: ServerResponse, key: string, to: LeastWriter): Promise<void> {
  const uses = await to.write({ name: 'use', licenseKey: key });
  const license = licenses.get(key);
  answerLicense(response, license && { ...license, uses });
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  const text = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

function addUseInMemory(key: string): License | undefined {
  const license = licenses.get(key);
  if (license !== undefined) license.uses += 1;
  return license;
}

function transactionEach(file: string): (key: string) => License | undefined {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE license (license_key TEXT PRIMARY KEY NOT NULL, uses INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    BEGIN`);
  const add = database.prepare('INSERT INTO license (license_key, uses) VALUES (?, 0)');
  for (const key of licenses.keys()) add.run(key);
  database.exec('COMMIT');
  const begin = database.prepare('BEGIN IMMEDIATE');
  const update = database.prepare('UPDATE license SET uses = uses + 1 WHERE license_key = ? RETURNING uses');
  const commit = database.prepare('COMMIT');
  return (key) => {
    begin.run();
    const row = update.get(key);
    commit.run();
    const license = licenses.get(key);
    return license === undefined ? undefined : { ...license, uses: Number(row?.['uses']) };
  };
}
