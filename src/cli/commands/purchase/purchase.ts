import { request, type Result, type View } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
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
  const byId = await request(options, { path: purchasePath(idOrKey) }, purchaseObject);
  if (byId.ok || byId.problem !== 'purchase_not_found') return byId;
  const query = { license_key: idOrKey };
  const byKey = await request(options, { path: purchasesPath, query }, purchaseList);
  if (!byKey.ok) return byKey;
  const [data] = byKey.data.purchases;
  const [raw] = (byKey.raw as { purchases: unknown[] }).purchases;
  if (data !== undefined) return { ok: true, data, raw, answer: byKey.answer };
  return {
    ...byId,
    report(output) {
      const code = byId.report(output);
      const search = hintFor(options)('purchase list --email …');
      output.printError([`No license key matches either. To search: ${search}`]);
      return code;
    },
  };
}

export function purchasePath(id: string): string {
  return `${purchasesPath}/${encodeURIComponent(id)}`;
}
