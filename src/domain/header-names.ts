/*
 * The names of HTTP headers that this program or the specification defines, spelled as in the documentation. Header
 * names are compared without case.
 */

/** Headers that carry a credential (specification 3). `upstream.headers` can name others for requests to the upstream. */
export const credentialHeaders = {
  apiKey: 'service-api-key',
  productSecret: 'product-secret-key',
} as const;

/** The header of the API key in each dialect. */
export const apiKeyHeaders: Readonly<Record<DialectName, string>> = {
  specification: credentialHeaders.apiKey,
  payhip: 'payhip-api-key',
};

/** Makes a write repeatable (draft-ietf-httpapi-idempotency-key-header). */
export const idempotencyKeyHeader = 'Idempotency-Key';

/** Identifies a request in its response, in the log and at the upstream (src/http/README.md, The id of a request). */
export const requestIdHeader = 'X-Request-Id';

/** Headers that say how current a response is (src/http/README.md, Agent headers). */
export const provenanceHeaderNames = {
  freshness: 'Latchkey-Freshness',
  confirmedAt: 'Latchkey-Confirmed-At',
  graceUntil: 'Latchkey-Grace-Until',
  pending: 'Latchkey-Pending',
} as const;

/** How many coupons of the upstream cannot be read and are not in the list (src/http/README.md, Agent headers). */
export const leftOutHeader = 'Latchkey-Left-Out';

/**
 * The instance that sent a response, or a request to its upstream. The command line recognizes its daemon by this
 * header, and an agent recognizes its own requests.
 */
export const instanceHeader = 'Latchkey-Instance';

/**
 * Says with the `Idempotency-Key` of an agent's change when the agent's caller asked, and what the agent knew
 * (src/sync/BETWEEN-LATCHKEYS.md, Ids of operations): `created=<epoch ms>[, epoch=<32 hex>][, repeat][, seen=<revision>]`.
 */
export const operationHeader = 'Latchkey-Operation';

/** The history of a Latchkey's store: 32 hexadecimal digits. The first half names the store; a restore changes the rest. */
export const epochHeader = 'Latchkey-Epoch';

/** The revision of a license, and the one at which the change was carried out: `<revision>[; applied=<revision>]`. */
export const revisionHeader = 'Latchkey-Revision';

/** The dialects of the API: as in the specification, or as in the store that the specification comes from. */
export const dialectNames = ['specification', 'payhip'] as const;

export type DialectName = (typeof dialectNames)[number];

/** Stores with an API of their own. */
export const foreignStoreNames = ['gumroad', 'lemonsqueezy', 'polar'] as const;

export type ForeignStoreName = (typeof foreignStoreNames)[number];

/** All kinds of stores (src/stores/). */
export type StoreName = DialectName | ForeignStoreName;
