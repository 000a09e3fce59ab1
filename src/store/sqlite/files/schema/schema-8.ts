/* The eighth schema: the spellings of a license key have an age, by which the oldest gives way to a new one. */
export const schema8: string = /* sql */ `
ALTER TABLE license_alias ADD COLUMN added_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX license_alias_age ON license_alias (license_key, added_at);
`;
