import { createHmac } from 'node:crypto';
import { signingKeysOf } from './domain/webhook.ts';

/** What is signed: the id of the event, the time of the attempt in whole seconds, and the body. */
export type Message = { id: string; timestampS: number; body: string };

/** The signature of a message by a key (Standard Webhooks 1.0). */
export function signatureOf(
  { id, timestampS, body }: Omit<Message, 'body'> & { body: string | Buffer },
  key: Buffer,
): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body).digest('base64')}`;
}

/** The headers of Standard Webhooks 1.0, with a signature by each secret (`whsec_` and base64). */
export function signedHeaders(
  message: Message,
  secrets: readonly string[],
): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  // The first key is the one of the standard.
  const keys = secrets.flatMap((secret) => signingKeysOf(secret).slice(0, 1));
  return {
    'webhook-id': message.id,
    'webhook-timestamp': String(message.timestampS),
    'webhook-signature': keys.map((key) => signatureOf(message, key)).join(' '),
  };
}
