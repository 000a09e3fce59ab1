/* The fourth schema. */
export const schema4: string = /* sql */ `
-- By which request an operation was asked for, and under which credential.
ALTER TABLE outbox ADD COLUMN request_id TEXT;
ALTER TABLE outbox ADD COLUMN credential TEXT;
-- Also in the stored answers of decisions about it, which are repeated; of the first schema, with what the second added.
UPDATE idempotency SET value = json_insert(value, '$.value.operation.fencedUntil', NULL,
    '$.value.operation.upstream', NULL, '$.value.operation.seenEnabled', NULL,
    '$.value.operation.requestId', NULL, '$.value.operation.credential', NULL)
  WHERE value LIKE '{"ok":true,"value":{"operation":%';
`;
