import { join } from 'node:path';
import {
  type Account,
  type Product,
  defaultLeaseTerms,
  defaultProductTerms,
} from '../../../src/domain/catalogue.ts';
import type { Token } from '../../../src/domain/access/principal.ts';
import type { License } from '../../../src/domain/license.ts';
import type { LicenseSnapshot } from '../../../src/domain/agent/license-snapshot.ts';
import {
  openReading,
  openWriting,
  type ReadingConnection,
  type WritingConnection,
} from '../../../src/store/sqlite/connection.ts';
import { openStore } from '../../../src/store/sqlite/files/open.ts';
import { temporaryDirectory } from '../temporary.ts';

export const at: number = Date.UTC(2026, 0, 1);
export const page = { limit: 100, offset: 0 } as const;
export const account: Account = { accountId: 'default', name: 'Default', createdAt: at };
export const product: Product = {
  productKey: 'press',
  accountId: 'default',
  name: 'Press',
  recurring: false,
  createdAt: at,
  archivedAt: null,
  leaseTerms: defaultLeaseTerms,
  licenseTerms: defaultProductTerms,
};

export function buildLicense(with_: Partial<License> = {}): License {
  const license = { licenseKey: 'KEY-1', productKey: 'press', buyerEmail: 'a@example.com' };
  return { ...license, uses: 0, enabled: true, createdAt: at, ...with_ };
}

/** A token of the operator for every scope, without an end. */
export function buildToken(with_: Partial<Token> = {}): Token {
  const token = {
    tokenId: 'token-1',
    scopes: ['admin'],
    productKey: null,
    accountId: null,
    label: null,
  } as const;
  return { ...token, createdAt: at, lastUsedAt: null, expiresAt: null, ...with_ };
}

export function buildSnapshot(with_: Partial<LicenseSnapshot> = {}): LicenseSnapshot {
  return {
    license: buildLicense({ productKey: 'https://store.example/press', uses: -1 }),
    local: { uses: 0, enabled: false, pending: 2 },
    productId: 'press',
    confirmedAt: at,
    run: 3,
    manyWriters: true,
    missingSince: null,
    gone: false,
    readFirst: false,
    askedAt: at + 5,
    refreshAt: at + 6,
    ...with_,
  };
}

/** A store in its own file, with its writing and its reading connection. */
export interface TestStore extends AsyncDisposable {
  readonly directory: string;
  readonly databasePath: string;
  readonly writing: WritingConnection;
  readonly reading: ReadingConnection;
}

export function createTestStore(): TestStore {
  const owned = new AsyncDisposableStack();
  const directory = join(owned.use(temporaryDirectory()).path, 'state');
  const { databasePath } = owned.use(openStore({ directory }));
  const writing = owned.use(openWriting(databasePath));
  const reading = owned.use(openReading(databasePath));
  return {
    directory,
    databasePath,
    writing,
    reading,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
