import type { DialectName } from './dialect.ts';

/*
 * The names of HTTP headers that this program gave a meaning, or took it from the specification; spelled as in
 * the documentation. Header names are compared without case.
 */

/** Carry a credential (specification 3); `upstream.headers` can name others for the way up. */
export const credentialHeaders = {
  apiKey: 'service-api-key',
  productSecret: 'product-secret-key',
} as const;

/** The header of the API key, as each dialect calls it. */
export const apiKeyHeaders: Readonly<Record<DialectName, string>> = {
  specification: credentialHeaders.apiKey,
  payhip: 'payhip-api-key',
};

/** Makes a write repeatable (draft-ietf-httpapi-idempotency-key-header). */
export const idempotencyKeyHeader = 'Idempotency-Key';

/** Names a request, in its answer, in the log and on the way up (src/http/README.md, The id of a request). */
export const requestIdHeader = 'X-Request-Id';

/** Tell how current an answer is (src/http/README.md, Agent headers). */
export const provenanceHeaderNames = {
  freshness: 'Latchkey-Freshness',
  confirmedAt: 'Latchkey-Confirmed-At',
  graceUntil: 'Latchkey-Grace-Until',
  pending: 'Latchkey-Pending',
} as const;

/**
 * Tells which instance answered, and which one asks its upstream: the command line recognizes its daemon by it,
 * and an agent itself.
 */
export const instanceHeader = 'Latchkey-Instance';
