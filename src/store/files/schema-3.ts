/*
 * The third schema. A token for everything was of the default account in name only: it reaches every account.
 */
export const schema3: string = /* sql */ `
UPDATE token SET account_id = NULL
  WHERE account_id = 'default' AND ' ' || scopes || ' ' LIKE '% admin %';
`;
