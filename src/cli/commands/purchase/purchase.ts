import { request, type Result, type View } from '../../client/request.ts';
import { CommandError, type GlobalOptions } from '../../command.ts';
import { formatFields, instant, whole } from '../../format.ts';
import { hintFor } from '../../hint.ts';
import { licenseFields } from '../license/license.ts';
import { purchaseList, type PurchaseObject, purchaseObject } from '../../../wire/purchase.ts';

export const purchasesPath = '/admin/v1/purchases';

export const purchaseView: View<PurchaseObject> = {
  schema: purchaseObject,
  show: ({ purchase_id, date, refunded_at, license: issued }) =>
    formatFields({
      purchase: whole(purchase_id),
      sold: instant(date),
      refunded: instant(refunded_at) ?? 'no',
      ...licenseFields(issued),
    }),
};

/** Finds a purchase by its id, or else by its license key. */
export async function findPurchase(options: GlobalOptions, idOrKey: string): Promise<Result<PurchaseObject>> {
  try {
    return await request(options, { path: purchasePath(idOrKey) }, purchaseObject);
  } catch (error) {
    if (!(error instanceof CommandError) || error.refusal?.code !== 'purchase_not_found') throw error;
    const query = { license_key: idOrKey };
    const byKey = await request(options, { path: purchasesPath, query }, purchaseList);
    const [data] = byKey.data.purchases;
    const [raw] = (byKey.raw as { purchases: unknown[] }).purchases;
    if (data !== undefined) return { data, raw, answer: byKey.answer };
    const advice = `No license key matches either. To search: ${hintFor(options)('purchase list --email …')}`;
    throw new CommandError([...error.lines, advice], error.code, error.refusal);
  }
}

export function purchasePath(id: string): string {
  return `${purchasesPath}/${encodeURIComponent(id)}`;
}
