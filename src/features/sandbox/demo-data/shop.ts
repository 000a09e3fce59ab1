import { defaultAccountId, type Scope } from '../../../domain/access/principal.ts';
import type { CouponScope, CouponTerms } from '../../../domain/checkout/coupon.ts';
import { dayMs } from '../../../domain/time.ts';
import type { PastWriter } from './past-writer.ts';

/** A product of the demo shop. `price`: cents. */
export type DemoProduct = { productKey: string; name: string; price: number; popularity: number };

/** The shop after its first days: what is sold, and who sells. */
export type DemoShop = {
  products: readonly [DemoProduct, ...DemoProduct[]];
  /** The secrets of the products that the demo data adds, by the key of the product. */
  secrets: Map<string, string>;
  /** The credentials of the shop's server, of the support desk, and of the software. */
  actors: { shop: string; support: string; build: string };
};

const otherProducts = [
  { key: 'Wq7Tn', name: 'Inkwell Pro', price: 9_900, popularity: 0.27, seats: 5, recurring: false },
  { key: 'kT3aP', name: 'Paper Pack', price: 1_900, popularity: 0.17, seats: null, recurring: false },
  { key: 'm9ZdQ', name: 'Inkwell Cloud', price: 900, popularity: 0.12, seats: 2, recurring: true },
] as const;

/** Adds the products, collections, accounts and tokens. `productKey`: the product of the sandbox. */
export async function openShop(writer: PastWriter, productKey: string, start: number): Promise<DemoShop> {
  const inkwell = { productKey, name: 'Inkwell', recurring: false, archived: false };
  await writer.run('updateProduct', { ...inkwell, leaseTerms: { seats: 3 } }, { at: start });
  const secrets = new Map<string, string>();
  for (const [index, { key, name, recurring, seats }] of otherProducts.entries()) {
    const command = { name, recurring, productKey: key, secret: null, leaseTerms: { seats } };
    const product = { ...command, accountId: defaultAccountId };
    const { secret } = await writer.run('addProduct', product, { at: start + (index + 1) * 90_000 });
    secrets.set(key, secret);
  }
  await addFormerProduct(writer, start);
  const collection = { accountId: defaultAccountId, name: 'Writing', collectionId: 'writing' };
  const productKeys = [productKey, 'Wq7Tn'];
  await writer.run('addCollection', { ...collection, productKeys }, { at: start + 600_000 });
  await addStudio(writer, start + 120 * dayMs);
  const products = [
    { productKey, name: 'Inkwell', price: 4_900, popularity: 0.44 },
    ...otherProducts.map(({ key, name, price, popularity }) => ({
      productKey: key,
      name,
      price,
      popularity,
    })),
  ] as const;
  return { products, secrets, actors: await issueTokens(writer, productKey, start + 900_000) };
}

/** A product that is no longer sold. */
async function addFormerProduct(writer: PastWriter, start: number): Promise<void> {
  const product = { name: 'Inkwell 1', recurring: false, productKey: 'aB0xV' };
  const added = { ...product, accountId: defaultAccountId, secret: null };
  await writer.run('addProduct', added, { at: start + 400_000 });
  await writer.run('updateProduct', { ...product, archived: true }, { at: start + 60 * dayMs });
}

/** Another seller on the same authority. */
async function addStudio(writer: PastWriter, at: number): Promise<void> {
  const { account } = await writer.run('addAccount', { name: 'Studio Halm', apiKey: null }, { at });
  const { accountId } = account;
  const product = { name: 'Halm Brushes', recurring: false, productKey: 'hX4Pm', accountId, secret: null };
  await writer.run('addProduct', product, { at: at + 300_000 });
}

async function issueTokens(writer: PastWriter, productKey: string, at: number): Promise<DemoShop['actors']> {
  const issue = async (label: string, scopes: readonly Scope[], more: object = {}): Promise<string> => {
    const token = { scopes, label, productKey: null, accountId: null, expiresAt: null, isAgent: false };
    return (await writer.run('issueToken', { ...token, ...more }, { at })).token.tokenId;
  };
  const shop = await issue('Shop server', ['sell', 'coupons:read', 'coupons:write']);
  const support = await issue('Support desk', ['verify', 'manage', 'coupons:read']);
  const build = await issue('Build server', ['verify', 'use'], { productKey, expiresAt: at + 400 * dayMs });
  const former = await issue('Contractor', ['verify', 'use', 'manage'], { productKey });
  await writer.run('revokeToken', { tokenId: former, accountId: null }, { at: at + 75 * dayMs });
  return { shop: `token:${shop}`, support: `token:${support}`, build: `token:${build}` };
}

/** A coupon of the demo shop. Days count from the start of the year; `null`: no limit. */
export type DemoCoupon = { terms: CouponTerms; createdAt: number; popularity: number };

const multi: CouponScope = { type: 'multi' };
const writing: CouponScope = { type: 'collection', collectionId: 'writing' };

/** `start` and `end`: the first and the last instant of the year. */
export function demoCoupons(productKey: string, start: number, end: number): readonly DemoCoupon[] {
  const percent = (percentOff: number) => ({ type: 'percent', percentOff }) as const;
  const amount = (amountOff: number) => ({ type: 'amount', amountOff }) as const;
  const none = { startAt: null, endAt: null, minimumPurchaseAmount: null, usageLimit: null, notes: null };
  const inkwell: CouponScope = { type: 'single', productKey };
  const terms: readonly [day: number, popularity: number, CouponTerms][] = [
    [2, 0.35, { ...none, code: 'LAUNCH10', scope: multi, discount: percent(10), endAt: start + 40 * dayMs }],
    [20, 0.06, { ...none, code: 'WELCOME5', scope: inkwell, discount: amount(500) }],
    [60, 0.05, { ...none, code: 'STUDENT', scope: writing, discount: percent(50), usageLimit: 30 }],
    [
      150,
      0.3,
      {
        ...none,
        code: 'SUMMER15',
        scope: multi,
        discount: percent(15),
        startAt: start + 160 * dayMs,
        endAt: start + 200 * dayMs,
        notes: 'Newsletter of June',
      },
    ],
    [
      320,
      0.32,
      {
        ...none,
        code: 'SPRING',
        scope: writing,
        discount: percent(20),
        endAt: end + 21 * dayMs,
        minimumPurchaseAmount: 6_000,
        usageLimit: 60,
        notes: 'Partner blogs; from 60.00 on',
      },
    ],
    [350, 0, { ...none, code: 'NEXTYEAR', scope: multi, discount: percent(25), startAt: end + 30 * dayMs }],
  ];
  return terms.map(([day, popularity, each]) => ({
    terms: each,
    createdAt: start + day * dayMs,
    popularity,
  }));
}

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
