/**
 * The reference server for a verify on PostgreSQL: `node:http` with the minimal work. It checks the secret, reads the
 * license by its primary key with the same driver, and writes JSON.
 * `node bare-database.ts OPTIONS` prints its addresses as JSON.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'pg';
import { secret } from '../sample.ts';

export type BareDatabaseOptions = {
  readonly url: string;
  readonly table: string;
};

const { url, table } = JSON.parse(process.argv[2] ?? '') as BareDatabaseOptions;
// One pipelined connection for all requests: more connections are slower.
const client = new Client({ connectionString: url, pipeline: true });
await client.connect();
const text = `SELECT license_key, product_key, buyer_email, uses, enabled, created_at FROM ${table} WHERE license_key = $1`;

const server = createServer((request, response) => {
  void serve(request, response);
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.headers['product-secret-key'] !== secret) {
    answer(response, 401, { error: 'Unauthorized' });
    return;
  }
  const target = request.url ?? '';
  const key = target.slice(target.indexOf('license_key=') + 12);
  const { rows } = await client.query<Record<string, unknown>>({ name: 'read', text, values: [key] });
  const [row] = rows;
  if (row === undefined) answer(response, 404, { error: 'Not Found' });
  else answer(response, 200, { data: row });
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}
