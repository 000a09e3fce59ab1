import { z } from 'zod';
import { request, type Result, type View } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
import { formatFields, instant, whole } from '../../format.ts';
import { hintFor } from '../../hint.ts';
import { license, licenseFields } from '../license/license.ts';

export const purchasesPath = '/admin/v1/purchases';

export const purchase = z.object({
  purchase_id: z.string(),
  date: z.string(),
  refunded: z.boolean(),
  refunded_at: z.string().nullable(),
  license,
});

type Purchase = z.infer<typeof purchase>;

/** Shows a purchase and its license. */
export const purchaseView: View<Purchase> = {
  schema: purchase,
  show: ({ purchase_id, date, refunded_at, license: issued }) =>
    formatFields({
      purchase: whole(purchase_id),
      sold: instant(date),
      refunded: instant(refunded_at) ?? 'no',
      ...licenseFields(issued),
    }),
};

/** Finds a purchase by its id, or else by its license key. */
export async function findPurchase(options: GlobalOptions, idOrKey: string): Promise<Result<Purchase>> {
  const byId = await request(options, { path: purchasePath(idOrKey) }, purchase);
  if (byId.ok || byId.problem !== 'purchase_not_found') return byId;
  const query = { license_key: idOrKey };
  const schema = z.object({ purchases: z.array(purchase) });
  const byKey = await request(options, { path: purchasesPath, query }, schema);
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
