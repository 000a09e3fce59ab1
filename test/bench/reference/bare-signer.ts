/** A `node:http` server that signs a text with ES256 for each request, as much as a lease at least needs. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
/** As long as the signed part of a lease. */
const lease = 'x'.repeat(900);

const server = createServer((request, response) => {
  // Like an issuer, it lets such a request wait.
  if (request.headers['prefer'] !== undefined) {
    request.resume();
    return;
  }
  let body = '';
  request.setEncoding('latin1');
  request.on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    const signature = sign('sha256', Buffer.from(lease), key).toString('base64url');
    const text = JSON.stringify({ data: { lease: `${lease}.${signature}`, length: body.length } });
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
    response.end(text);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
