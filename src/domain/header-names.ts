/*
 * The names of HTTP headers that this program gave a meaning, or took it from the specification; spelled as in
 * the documentation. Header names are compared without case.
 */

/** Carry a credential (specification 3); `upstream.headers` can name others for the way up. */
export const credentialHeaders = {
  apiKey: 'service-api-key',
  productSecret: 'product-secret-key',
} as const;

/** Makes a write repeatable (draft-ietf-httpapi-idempotency-key-header). */
export const idempotencyKeyHeader = 'Idempotency-Key';

/** Tell how current an answer is (src/http/README.md, What an agent adds). */
export const provenanceHeaderNames = {
  freshness: 'Latchkey-Freshness',
  confirmedAt: 'Latchkey-Confirmed-At',
  graceUntil: 'Latchkey-Grace-Until',
  pending: 'Latchkey-Pending',
} as const;

/** Tells which instance answered; the command line and an agent's own client recognize themselves by it. */
export const instanceHeader = 'Latchkey-Instance';
