/** The customers of the demo shop. Names under `.example` are reserved (RFC 2606). */

const givenNames = [
  'anna',
  'ben',
  'clara',
  'david',
  'elif',
  'finn',
  'greta',
  'hugo',
  'ida',
  'jonas',
  'kaya',
  'lena',
  'mateo',
  'nora',
  'oskar',
  'paula',
  'quentin',
  'rosa',
  'samir',
  'tilda',
  'uma',
  'viktor',
  'wanda',
  'yusuf',
  'zoe',
] as const;

const familyNames = [
  'albers',
  'becker',
  'costa',
  'dubois',
  'eriksen',
  'fischer',
  'garcia',
  'hansen',
  'ivanova',
  'jensen',
  'keller',
  'larsen',
  'moreau',
  'novak',
  'okafor',
  'petit',
  'rossi',
  'schmidt',
  'tanaka',
  'ueda',
  'vogel',
  'weber',
  'yilmaz',
] as const;

const domains = [
  'mail.example',
  'post.example',
  'atelier-nord.example',
  'uni-lund.example',
  'brightpress.example',
  'weber-und-kollegen.example',
  'studio-costa.example',
  'quill.example',
] as const;

export type Buyer = { buyerEmail: string; name: string };

function capital(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

const all: readonly Buyer[] = givenNames.flatMap((given, index) =>
  familyNames.map((family, offset) => ({
    buyerEmail: `${given}.${family}@${domains[(index * 7 + offset * 3) % domains.length]}`,
    name: capital(given),
  })),
);

/** The customer whose license has all its seats taken. */
export const demoBuyer = {
  licenseKey: 'ATELR-THREE-SEATS-FULLY',
  buyerEmail: 'ines.moreau@atelier-moreau.example',
  name: 'Ines',
  refundedAt: null,
};

export const buyers = all as readonly [Buyer, ...Buyer[]];
