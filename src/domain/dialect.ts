/** The dialects of the API: as in the specification, or as in the store that the specification comes from. */
export const dialectNames = ['specification', 'payhip'] as const;

export type DialectName = (typeof dialectNames)[number];
