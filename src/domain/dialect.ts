/** The ways in which a server of the API speaks: as the specification says, or as the store does that it was taken from. */
export const dialectNames = ['specification', 'payhip'] as const;

export type DialectName = (typeof dialectNames)[number];
