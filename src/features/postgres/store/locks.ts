import { foldCouponCode } from '../../../domain/checkout/coupon.ts';
import { done } from '../../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../../../service/tables.ts';
import { features } from '../../../features.ts';
import { lockOrder, type LockKind, type Locks, noLocks } from '../../../service/locks.ts';
import type {
  CommandOf,
  CommandResult,
  CoreUseCases,
  TransactionOf,
  UseCaseName,
} from '../../../service/writer.ts';
import { advisoryKey, inSchema, literal, type Names } from './names.ts';
import { statementOf, type BoundStatement, type Statement } from './statements.ts';

/** The use cases that run on both engines. */
export type AuthorityUseCase = {
  [Name in UseCaseName]: [AuthorityTransaction] extends [TransactionOf<Name>] ? Name : never;
}[UseCaseName];

/**
 * The locks of each use case, with the values of their statements. A license has the grace of its product, so what writes
 * a license shares `graces`, and a change of a grace has it alone, also without an import (`imports`).
 */
const coreLocks: { [Name in AuthorityUseCase & keyof CoreUseCases]: (command: CommandOf<Name>) => Locks } = {
  startAuthority: () => ({ start: [] }),
  addAccount: () => ({ credentials: [] }),
  rotateApiKey: ({ accountId }) => ({ credentials: [], account: [accountId] }),
  addProduct: () => ({ credentials: [] }),
  rotateProductSecret: ({ productKey }) => ({ credentials: [], product: [productKey] }),
  updateProduct: ({ productKey }) => ({ imports: [], graces: [], product: [productKey] }),
  addCollection: noLocks,
  updateCollection: ({ collectionId }) => ({ collection: [collectionId] }),
  addPurchase: () => ({ sharedGraces: [] }),
  // Another key may take the place of the license until the purchase is locked.
  refundPurchase: ({ purchaseId }) => ({ purchase: [purchaseId, null], licenseOfPurchase: [purchaseId] }),
  // Its only statement locks the license.
  changeLicense: noLocks,
  updateLicense: ({ licenseKey }) => ({ sharedGraces: [], licenses: [[licenseKey]] }),
  renewLicense: ({ licenseKey }) => ({ sharedGraces: [], licenses: [[licenseKey]] }),
  recordLicenseEnds: noLocks,
  // Its first read locks the product.
  spreadGrace: noLocks,
  createCoupon: noLocks,
  updateCoupon: ({ accountId, id }) => ({ coupon: [accountId, id] }),
  endCoupon: ({ accountId, id }) => ({ coupon: [accountId, id] }),
  deleteCoupon: ({ accountId, id }) => ({ coupon: [accountId, id] }),
  redeemCoupon: ({ accountId, cart }) => ({ couponCode: [accountId, foldCouponCode(cart.code)] }),
  voidRedemption: ({ accountId, order: id }) => ({ order: [accountId, id] }),
  issueToken: noLocks,
  revokeToken: ({ tokenId }) => ({ tokens: [[tokenId]] }),
  rotateToken: ({ tokenId }) => ({ credentials: [], tokens: [[tokenId]] }),
  storeFinalResponse: noLocks,
  recordProcessAct: noLocks,
  markTime: noLocks,
  pruneIdempotency: noLocks,
  storeTokenUses: ({ uses }) => ({ tokens: [uses.map(({ tokenId }) => tokenId)] }),
  pruneOldCredentials: noLocks,
  pruneHistory: noLocks,
};

/** With the locks of the use cases of features. */
const locks: { [Name in AuthorityUseCase]?: (command: CommandOf<Name>) => Locks } = Object.assign(
  {},
  coreLocks,
  ...features.map(({ useCases }) => useCases?.locks),
);

/**
 * Maintenance that one node does for all nodes. The values are the results for nodes that try at the same time.
 */
export const maintenance: { readonly [Name in AuthorityUseCase]?: CommandResult<Name> } = {
  markTime: done(null),
  pruneOldCredentials: done(null),
  pruneIdempotency: done({ removed: 0 }),
  pruneHistory: done({ removed: 0 }),
  recordLicenseEnds: done({ events: 0 }),
  spreadGrace: done({ hasStepped: false }),
  ...(Object.assign({}, ...features.map(({ useCases }) => useCases?.byOneNode)) as object),
};

export function isAuthorityUseCase(name: UseCaseName): name is AuthorityUseCase {
  return name in locks;
}

/** Returns the locking statements of a use case, in `order`. */
export type LockPlan = (name: AuthorityUseCase, command: CommandOf<AuthorityUseCase>) => BoundStatement[];

export function prepareLocks(names: Names): LockPlan {
  const statements = lockStatements(names);
  return (name, command) => {
    // The compiler cannot infer the command type from the name.
    const locksOfCommand = (locks[name] as (command: CommandOf<AuthorityUseCase>) => Locks)(command);
    return lockOrder.flatMap((kind) => {
      const values = locksOfCommand[kind];
      return values === undefined ? [] : [{ statement: statements[kind], values }];
    });
  };
}

function lockStatements(names: Names): Record<LockKind, Statement> {
  const row = (text: string): Statement => statementOf(inSchema(names, `SELECT 1 FROM latchkey.${text}`));
  return {
    start: advisory(names, 'start'),
    imports: advisory(names, 'imports'),
    graces: advisory(names, 'graces'),
    sharedGraces: statementOf(`SELECT pg_advisory_xact_lock_shared(${advisoryKey(names, 'graces')})`),
    credentials: advisory(names, 'credentials'),
    webhooks: advisory(names, 'webhooks'),
    events: lockEvents(names),
    account: row('account WHERE account_id = $1 FOR NO KEY UPDATE'),
    product: row('product WHERE product_key = $1 FOR NO KEY UPDATE'),
    collection: row('collection WHERE collection_id = $1 FOR NO KEY UPDATE'),
    coupon: row('coupon WHERE account_id = $1 AND id = $2 FOR UPDATE'),
    couponCode: row('coupon WHERE account_id = $1 AND folded_code = $2 FOR NO KEY UPDATE'),
    order: row('redemption WHERE account_id = $1 AND order_id = $2 FOR UPDATE'),
    purchase: row(
      'purchase WHERE purchase_id = $1::text OR license_key = $2::text ORDER BY purchase_id FOR NO KEY UPDATE',
    ),
    licenseOfPurchase: row(`license WHERE license_key =
      (SELECT sold.license_key FROM latchkey.purchase AS sold WHERE sold.purchase_id = $1) FOR NO KEY UPDATE`),
    licenses: row('license WHERE license_key = ANY ($1::text[]) ORDER BY license_key FOR NO KEY UPDATE'),
    syncAgent: statementOf(
      `SELECT pg_advisory_xact_lock(hashtextextended(${literal(`latchkey ${names.schema} agent `)} || $1 || ' ' || $2, 0))`,
    ),
    tokens: row('token WHERE token_id = ANY ($1::text[]) ORDER BY token_id FOR UPDATE'),
  };
}

/**
 * An advisory lock until the end of the transaction. It includes the schema, so that two authorities in one database do
 * not wait for each other.
 */
export function advisory(names: Pick<Names, 'schema'>, what: string): Statement {
  return statementOf(`SELECT pg_advisory_xact_lock(${advisoryKey(names, what)})`);
}

/** The same without waiting; `acquired`: whether the lock was free. */
export function tryAdvisory(names: Pick<Names, 'schema'>, what: string): Statement {
  return statementOf(`SELECT pg_try_advisory_xact_lock(${advisoryKey(names, what)}) AS acquired`);
}

/** SQL for the advisory lock of an idempotency key; `credential`, `key`: SQL expressions. */
export function keyLock({ schema }: Pick<Names, 'schema'>, credential: string, key: string): string {
  return `hashtextextended(${literal(`latchkey ${schema} key `)} || ${credential} || ' ' || ${key}, 0)`;
}

/** Locks the numbers of events until the end of the transaction, if there is an endpoint. */
export function lockEvents(names: Names): Statement {
  return statementOf(
    `SELECT pg_advisory_xact_lock(${advisoryKey(names, 'events')}) WHERE EXISTS (SELECT 1 FROM ${names.of('webhook_endpoint')})`,
  );
}
