/*
 * The seventh schema: one index tells which license keys of a product were confirmed last, and how many were in a span
 * of time. A store may have it already, where the sixth schema was taken from a version between two releases.
 */
export const schema7: string = /* sql */ `
DROP INDEX IF EXISTS observation_age;
DROP INDEX observation_latest;
CREATE INDEX observation_latest ON observation (product_key, confirmed_at, local_enabled, gone);
`;
