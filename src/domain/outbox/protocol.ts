/** How changes reach the upstream: by the plain API, or by `/sync/v1` of another Latchkey. */
export type Protocol = 'plain' | 'latchkey';
