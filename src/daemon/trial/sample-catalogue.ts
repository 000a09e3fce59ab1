import type { LocalClient, LocalAnswer } from './local-client.ts';

/** A product with one sold license key, to try things on. */
export type Sample = {
  productKey: string;
  secret: string;
  licenseKey: string;
  purchaseId: string;
};

/** What a sample is to have, instead of made up. */
type SampleWishes = { product_key: string; product_secret: string; license_key: string };

/** Fills an empty authority with one product and one purchase of it, through its admin interface. */
export async function makeSample(admin: LocalClient, wishes: SampleWishes | null = null): Promise<Sample> {
  const product = data(
    await admin.postJson('/admin/v1/products', {
      name: 'Sample product',
      product_key: wishes?.product_key,
      secret: wishes?.product_secret,
    }),
  );
  const purchase = data(
    await admin.postJson('/admin/v1/purchases', {
      product_key: product['product_key'],
      buyer_email: 'buyer@example.com',
      license_key: wishes?.license_key,
    }),
  );
  const license = purchase['license'] as Record<string, unknown>;
  return {
    productKey: String(product['product_key']),
    secret: String(product['secret']),
    licenseKey: String(license['license_key']),
    purchaseId: String(purchase['purchase_id']),
  };
}

function data({ status, body }: LocalAnswer): Record<string, unknown> {
  if (status >= 300) throw new Error(`the sample catalogue was refused: ${JSON.stringify(body)}`);
  return (body as { data: Record<string, unknown> }).data;
}
