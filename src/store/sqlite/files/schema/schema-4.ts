/* The fourth schema. */
export const schema4: string = /* sql */ `
-- By which request an operation was asked for, and under which credential.
ALTER TABLE outbox ADD COLUMN request_id TEXT;
ALTER TABLE outbox ADD COLUMN credential TEXT;
`;
