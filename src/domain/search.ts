/** Characters are found three at a time. */
export const minSearched = 3;

/** How many records of a list that is searched are counted: a greater number only says that there are more. */
export const maxFound = 2_000;

/**
 * A text that is part of a license key, of an e-mail address or of a name, in any letter case. `keys`: where in a license
 * key it may be; `shown`: it must be the end that is shown of masked keys, or else the whole key.
 */
export type Search = { readonly text: string; readonly keys: 'anywhere' | 'shown' };

/** A filter that finds a text in license keys, in e-mail addresses and in what else identifies a record. */
export type Searched = { search?: Search | undefined };
