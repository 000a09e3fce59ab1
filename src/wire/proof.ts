import { createHmac, timingSafeEqual } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { isPipe } from '../domain/socket-path.ts';
import { parameters, textMatching } from './parameters.ts';

/*
 * The proof of a daemon that it knows the token in `admin.token`, and which address it was reached at (src/http/README.md,
 * Health and status). A command asks for it before it sends a token.
 */

/** What a proof is about. A proof is valid for one nonce, one store and one address. */
export type Claim = { nonce: string; instance: string; address: string };

/** The HMAC of a claim. JSON keeps the parts apart, and the first part keeps other uses of the token apart. */
export function proofOf(adminToken: string, { nonce, instance, address }: Claim): string {
  const text = JSON.stringify(['latchkey proof 1', nonce, instance, address]);
  return createHmac('sha256', adminToken).update(text).digest('base64url');
}

export function isProofOf(hmac: string, adminToken: string, claim: Claim): boolean {
  const [received, expected] = [hmac, proofOf(adminToken, claim)].map((text) => Buffer.from(text)) as [
    Buffer,
    Buffer,
  ];
  return received.length === expected.length && timingSafeEqual(received, expected);
}

/** One end of a TCP connection. */
export type TcpEnd = { host: string | undefined; port: number | undefined };

/**
 * The address of a TCP connection. With the end of the client, which no other connection to the listener has: a program
 * that accepted a connection before the daemon listened there could otherwise forward it to the same address.
 */
export function tcpAddress(listener: TcpEnd, client: TcpEnd): string {
  return `tcp ${formatEnd(listener)} from ${formatEnd(client)}`;
}

/** An IPv4 address within IPv6 is written as IPv4, and a zone is left out. */
function formatEnd({ host = '', port = 0 }: TcpEnd): string {
  const plain = host.replace(/^::ffff:(?=\d+(?:\.\d+){3}$)/i, '').split('%', 1)[0] ?? '';
  return `${plain.includes(':') ? `[${plain}]` : plain}:${port}`;
}

/** The address of a Unix socket, with links in its directory resolved, or of a pipe of Windows. */
export function socketAddress(path: string): string {
  return `socket ${isPipe(path) ? path : join(realpathSync(dirname(path)), basename(path))}`;
}

export const nonceText = textMatching(
  /^[A-Za-z0-9_-]{16,64}$/,
  64,
  'must have 16 to 64 characters of A-Z, a-z, 0-9, - and _',
);

/** `GET /livez`; with a nonce, the response has a proof. */
export const livenessQuery = parameters({ nonce: nonceText.optional() });

export const proofObject = z
  .object({
    address: z
      .string()
      .describe('The address at which the connection was accepted, and for TCP the end of the client.'),
    hmac: z.string().describe('HMAC-SHA256 with the token in `admin.token`, as base64url.'),
  })
  .meta({ id: 'Proof' });
