import { done, type Result } from '../../domain/problem/problem.ts';
import type { AuthorityTransaction } from '../tables.ts';

/*
 * Each license has the grace of its product. If the product gets another one, licenses that are sold or changed from then
 * on have it at once. The others get it in steps, because all of them in one commit would delay other writes.
 */

/** Sets the grace of the next licenses of a product, up to `limit`: those after `gracedTo`. */
export async function setNextGraces(
  { products, licenses }: Pick<AuthorityTransaction, 'products' | 'licenses'>,
  { productKey, graceMs, gracedTo }: { productKey: string; graceMs: number; gracedTo: string },
  limit: number,
): Promise<void> {
  const next = await licenses.after({ productKey }, gracedTo, limit);
  for (const { licenseKey } of next) await licenses.setGrace(licenseKey, graceMs);
  const last = next.length < limit ? undefined : next.at(-1);
  await products.setGracedTo(productKey, last?.licenseKey ?? null);
}

/** Takes the next step, if a product has another grace than its licenses. Returns whether one had. */
export async function spreadGrace(
  transaction: AuthorityTransaction,
  { limit }: { limit: number },
): Promise<Result<{ hasStepped: boolean }>> {
  const product = await transaction.products.halfGraced();
  if (product !== null) await setNextGraces(transaction, product, limit);
  return done({ hasStepped: product !== null });
}
