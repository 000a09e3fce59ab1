import { createHash } from 'node:crypto';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { WriterContext } from '../../../src/service/ports.ts';
import type { Transaction } from '../../../src/service/tables.ts';
import type { CommandOf, CoreUseCases, TransactionOf, UseCaseName } from '../../../src/service/writer.ts';
import { buildCart, buildTerms } from '../builders/coupon-builders.ts';
import { at } from '../builders/store-builders.ts';

/** The use cases that only need an authority's tables, and so run on any engine. */
export type AuthorityUseCase = {
  [Name in UseCaseName]: TransactionOf<Name> extends Transaction ? never : Name;
}[UseCaseName];

export const tenant = { accountId: 'default', productKey: null };

/** A command for each use case, in an order in which each command succeeds on a new store. */
const coreCommands: { [Name in AuthorityUseCase & keyof CoreUseCases]: CommandOf<Name> } = {
  startAuthority: { adminTokenDigest: 'admin', place: 'here', apiKeyDigest: digest('key') },
  addAccount: { name: 'Other', apiKey: 'theirs' },
  rotateApiKey: { accountId: 'of addAccount', oldUntil: at + 1 },
  addProduct: {
    name: 'Press',
    recurring: false,
    accountId: 'default',
    productKey: 'press',
    secret: 'theirs',
  },
  rotateProductSecret: { productKey: 'press', oldUntil: null },
  addCollection: { accountId: 'default', name: 'All', productKeys: ['press'], collectionId: 'all' },
  updateProduct: { productKey: 'press', name: 'Press 2', recurring: false, archived: false },
  updateCollection: { collectionId: 'all', name: 'Each', productKeys: ['press'] },
  addPurchase: {
    productKey: 'press',
    buyerEmail: 'a@example.com',
    licenseKey: 'KEY',
    soldAt: 1_708_600_985_000,
    uses: 3,
    enabled: true,
  },
  changeLicense: { tenant, licenseKey: 'KEY', trigger: 'usage' },
  updateLicense: { tenant, licenseKey: 'KEY', change: { expiresAt: 2_000_000_000_000 } },
  renewLicense: { tenant, licenseKey: 'KEY', span: '1y' },
  recordLicenseEnds: { expiringMs: 1_000 },
  spreadGrace: { limit: 1 },
  createCoupon: {
    accountId: 'default',
    terms: buildTerms({ scope: { type: 'collection', collectionId: 'all' } }),
  },
  redeemCoupon: {
    accountId: 'default',
    order: 'A-1',
    cart: buildCart({ productKey: 'press' }),
  },
  voidRedemption: { accountId: 'default', order: 'A-1' },
  updateCoupon: {
    accountId: 'default',
    id: 1,
    terms: buildTerms({ discount: { type: 'amount', amountOff: 5 }, code: 'MAY' }),
  },
  endCoupon: { accountId: 'default', id: 1 },
  deleteCoupon: { accountId: 'default', id: 1 },
  issueToken: {
    scopes: ['verify'],
    productKey: 'press',
    accountId: 'default',
    label: null,
    expiresAt: null,
    isAgent: false,
  },
  rotateToken: { tokenId: 'of issueToken', accountId: null, oldUntil: null },
  revokeToken: { tokenId: 'of issueToken', accountId: null },
  storeFinalResponse: { idempotency: { credential: 'c', key: 'waited', fingerprint: 'f' }, value: 1 },
  recordProcessAct: { act: 'reload', detail: 'log.level' },
  markTime: { mark: { at, isConfirmed: true } },
  pruneIdempotency: { removalTime: at, limit: 10 },
  storeTokenUses: { uses: [{ tokenId: 'admin.token', at }] },
  pruneOldCredentials: { verifiedNow: at },
  pruneHistory: { before: at, limit: 1 },
  refundPurchase: { purchaseId: 'of addPurchase' },
};

const { startAuthority, refundPurchase, ...otherCommands } = coreCommands;
const ofFeatures = await commandsOfFeatures();

/** With the commands of features: those come first that later commands use. The refund disables the license. */
const authorityCommands = Object.assign(
  { startAuthority },
  ...ofFeatures.map(({ first }) => first),
  otherCommands,
  ...ofFeatures.map(({ commands }) => commands),
  { refundPurchase },
) as Record<AuthorityUseCase, CommandOf<AuthorityUseCase>>;
export const authorityUseCases: readonly AuthorityUseCase[] = Object.keys(
  authorityCommands,
) as AuthorityUseCase[];

/** `first`: those that come before the commands of the core. */
async function commandsOfFeatures(): Promise<readonly { commands: object; first?: object }[]> {
  const root = join(import.meta.dirname, '../../features');
  const files = globSync('*/authority-commands.ts', { cwd: root });
  return await Promise.all(
    files.map((file) => import(join(root, file)) as Promise<{ commands: object; first?: object }>),
  );
}

export type AuthorityRequest = {
  name: AuthorityUseCase;
  command: CommandOf<AuthorityUseCase>;
  writeOptions: object;
};

/** A person's write, under an idempotency key. */
export function requestOf(name: AuthorityUseCase): AuthorityRequest {
  const idempotency = { credential: 'token:admin', key: name, fingerprint: name };
  return { name, command: authorityCommands[name], writeOptions: { actor: 'token:admin', idempotency } };
}

export function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

export function contextOf(name: AuthorityUseCase): WriterContext {
  const bytes = (count: number): Uint8Array => createHash('sha512').update(name).digest().subarray(0, count);
  return {
    now: at,
    monotonic: at,
    random: { bytes, uuid: () => `of ${name}`, fraction: () => 0.5 },
    digest,
    recordsHistory: true,
  };
}
