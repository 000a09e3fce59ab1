import { createHmac } from 'node:crypto';

/** What is signed: the id of the event, the time of the attempt in whole seconds, and the body. */
export type Message = { id: string; timestampS: number; body: string };

/** The headers of Standard Webhooks 1.0, with a signature by each secret (`whsec_` and base64). */
export function signedHeaders(
  { id, timestampS, body }: Message,
  secrets: readonly string[],
): Readonly<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestampS}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatures.join(' '),
  };
}
