import { createHash } from 'node:crypto';
import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { authorityCredentials } from '../../src/service/access/credential.ts';
import { TokenUses } from '../../src/service/access/token-use.ts';
import { isRefusal } from '../../src/service/access/idempotency.ts';
import { authorityCouponing, authorityLicensing } from '../../src/service/authority/answers.ts';
import type { WriterContext } from '../../src/service/ports.ts';
import { runUseCase } from '../../src/service/run.ts';
import type { AuthorityTransaction, Transaction } from '../../src/service/tables.ts';
import type { CommandOf, TransactionOf, UseCaseName } from '../../src/service/writer.ts';
import { prepareCommitter } from '../../src/store/commit.ts';
import { givenCart } from '../support/coupon-given.ts';
import { at, givenStore, page, type GivenStore } from '../support/store-given.ts';

/** The use cases that keep to the tables of an authority, and so run on any engine. */
type AuthorityUseCase = {
  [Name in UseCaseName]: TransactionOf<Name> extends Transaction ? never : Name;
}[UseCaseName];

const reach = { accountId: 'default', productKey: null };
const anyCoupon = { startAt: null, endAt: null, minimumPurchaseAmount: null, usageLimit: null, notes: null };

const noLicenseCells = { uses: null, enabled: null, createdAt: null };

/** A command for each of them, in an order in which each succeeds on a new store. */
const commands: { [Name in AuthorityUseCase]: CommandOf<Name> } = {
  startAuthority: { adminTokenDigest: 'admin', place: 'here', apiKeyDigest: digest('key') },
  addAccount: { name: 'Other', apiKey: 'theirs' },
  rollApiKey: { accountId: 'of addAccount', oldUntil: at + 1 },
  addProduct: {
    name: 'Press',
    recurring: false,
    accountId: 'default',
    productKey: 'press',
    secret: 'theirs',
  },
  rollProductSecret: { productKey: 'press', oldUntil: null },
  addCollection: { accountId: 'default', name: 'All', productKeys: ['press'], collectionId: 'all' },
  updateProduct: { productKey: 'press', name: 'Press 2', recurring: false, archived: false },
  updateCollection: { collectionId: 'all', name: 'Each', productKeys: ['press'] },
  addPurchase: {
    productKey: 'press',
    buyerEmail: 'a@example.com',
    licenseKey: 'KEY',
    soldAt: 1_708_600_985_000,
    uses: 3,
    enabled: false,
  },
  importLicenses: {
    rows: [
      {
        ...noLicenseCells,
        row: 1,
        licenseKey: 'TAKEN-OVER',
        productKey: 'press',
        buyerEmail: 'a@example.com',
      },
    ],
    rejected: [],
    isAtomic: false,
    isDryRun: false,
    accountId: null,
  },
  importPurchases: {
    rows: [
      {
        ...noLicenseCells,
        row: 1,
        purchaseId: 'theirs',
        licenseKey: 'BOUGHT-THERE',
        productKey: 'press',
        buyerEmail: 'a@example.com',
        refundedAt: at,
      },
    ],
    rejected: [],
    isAtomic: false,
    isDryRun: false,
    accountId: null,
  },
  importCoupons: {
    rows: [
      {
        row: 1,
        id: 7,
        terms: {
          ...anyCoupon,
          scope: { type: 'multi' },
          discount: { type: 'amount', amountOff: 500 },
          code: 'THEIRS',
        },
      },
    ],
    rejected: [],
    isAtomic: false,
    isDryRun: false,
    accountId: 'default',
  },
  changeLicense: { reach, licenseKey: 'KEY', trigger: 'usage' },
  refundPurchase: { purchaseId: 'of addPurchase' },
  createCoupon: {
    accountId: 'default',
    terms: {
      ...anyCoupon,
      scope: { type: 'collection', collectionId: 'all' },
      discount: { type: 'percent', percentOff: 20 },
      code: 'SPRING',
    },
  },
  redeemCoupon: {
    accountId: 'default',
    order: 'A-1',
    cart: givenCart({ productKey: 'press' }),
  },
  voidRedemption: { accountId: 'default', order: 'A-1' },
  updateCoupon: {
    accountId: 'default',
    id: 8,
    terms: {
      ...anyCoupon,
      scope: { type: 'multi' },
      discount: { type: 'amount', amountOff: 5 },
      code: 'MAY',
    },
  },
  endCoupon: { accountId: 'default', id: 8 },
  deleteCoupon: { accountId: 'default', id: 8 },
  issueToken: {
    scopes: ['verify'],
    productKey: 'press',
    accountId: 'default',
    label: null,
    expiresAt: null,
    configuredProducts: null,
  },
  revokeToken: { tokenId: 'of issueToken' },
  keepAnswer: { idempotency: { credential: 'c', key: 'waited', fingerprint: 'f' }, value: 1 },
  markTime: { mark: { at, isConfirmed: true } },
  pruneIdempotency: { believedNow: at, limit: 10 },
  keepTokenUses: { uses: [{ tokenId: 'admin.token', at }] },
  pruneOldCredentials: { believedNow: at },
  pruneHistory: { before: at, limit: 1 },
};
const names = Object.keys(commands) as AuthorityUseCase[];

type Request = { name: AuthorityUseCase; command: CommandOf<AuthorityUseCase>; writeOptions: object };

/** A person's write, under an idempotency key. */
function requestOf(name: AuthorityUseCase): Request {
  const idempotency = { credential: 'token:admin', key: name, fingerprint: name };
  return { name, command: commands[name], writeOptions: { actor: 'token:admin', idempotency } };
}

function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function contextOf(name: AuthorityUseCase): WriterContext {
  const bytes = (count: number): Uint8Array => createHash('sha512').update(name).digest().subarray(0, count);
  return {
    now: at,
    steady: at,
    random: { bytes, uuid: () => `of ${name}`, draw: () => 0.5 },
    digest,
    keepsHistory: true,
  };
}

/** Runs all of them in one batch, as the writer's thread does. */
async function runInABatch(store: GivenStore): Promise<unknown[]> {
  const committer = prepareCommitter<Request>(store.writing, {
    run: (transaction, request) => runUseCase(transaction, request, contextOf(request.name)),
    isRefusal,
  });
  return await committer.commitBatch(names.map(requestOf));
}

/** Tables on another machine, as far as callers can tell: every answer comes in a later turn of the event loop. */
function faraway(transaction: Transaction): AuthorityTransaction {
  const tables = Object.entries(transaction).map(([name, table]: [string, object]) => [
    name,
    new Proxy(table, {
      get:
        (target, method) =>
        async (...args: readonly unknown[]): Promise<unknown> => {
          await turnOfTheEventLoop();
          return (Reflect.get(target, method) as (...args: readonly unknown[]) => unknown)(...args);
        },
    }),
  ]);
  return Object.fromEntries(tables) as AuthorityTransaction;
}

/** Everything that is stored, table by table. */
function contentOf({ reading: { database } }: GivenStore): Record<string, unknown[]> {
  const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all();
  return Object.fromEntries(
    tables.map(({ name }) => [String(name), database.prepare(`SELECT * FROM "${String(name)}"`).all()]),
  );
}

test('nothing comes in between while a batch of all that an authority writes is committed', async () => {
  await using store = givenStore();
  const between: string[] = [];
  setImmediate(() => between.push('immediate'));
  setTimeout(() => between.push('timer'), 0);
  const { port1, port2 } = new MessageChannel();
  port2.on('message', () => between.push('message'));
  port1.postMessage('before the batch');
  const outcomes = await runInABatch(store);
  expect(between).toEqual([]);
  expect(outcomes).toMatchObject(names.map(() => ({ result: { ok: true } })));
  await turnOfTheEventLoop();
  expect(between).toContain('immediate');
  port1.close();
});

test('an authority writes the same on an engine that has to be waited for, and each request once', async () => {
  await using near = givenStore();
  const outcomes = await runInABatch(near);
  await using far = givenStore();
  const transaction = faraway(far.writing.transaction);
  for (const again of [false, true]) {
    for (const [index, name] of names.entries()) {
      const result = await runUseCase(transaction, requestOf(name), contextOf(name));
      expect(outcomes[index], `${name}, ${again ? 'again' : 'once'}`).toMatchObject({ result });
    }
    expect(contentOf(far)).toEqual(contentOf(near));
  }
  expect(contentOf(far)['audit']).toHaveLength(18);
});

test('an authority answers from an engine that has to be waited for', async () => {
  await using store = givenStore();
  await runInABatch(store);
  const reader = faraway(store.writing.transaction);
  const writer = { write: () => Promise.reject(new Error('it only reads')) };
  const { signal } = new AbortController();
  const credentials = authorityCredentials({
    reader,
    digest,
    believedNow: () => at,
    uses: new TokenUses(),
  });
  expect(await credentials.find('api_key', 'key')).toMatchObject({
    principal: { credential: 'account:default' },
  });
  expect(await credentials.find('product_secret', 'theirs')).toBeNull();
  const verified = await authorityLicensing(reader, writer).verify(reach, 'KEY', signal);
  expect(verified).toMatchObject({ ok: true, value: { license: { uses: 4, enabled: false } } });
  const listed = await authorityCouponing(reader, writer).list('default', page, signal);
  expect(listed).toMatchObject({
    ok: true,
    value: { total: 1, coupons: [{ code: 'THEIRS' }] },
  });
});
