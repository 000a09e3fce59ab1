import { z } from 'zod';
import type { Account, Collection, Product } from '../../domain/catalogue.ts';
import { maximumLicenseKeyLength } from '../../domain/license-key.ts';
import type { AccountWithKey } from '../../service/authority/account.ts';
import type { ProductWithSecret } from '../../service/authority/product.ts';
import type { PurchaseWithLicense } from '../../service/authority/purchase.ts';
import { boolean, text, texts } from './kind.ts';
import { licenseKeyText, licenseObject, presentLicense, type LicenseObject } from './license.ts';
import { parameters, type ParameterSet } from './parameters.ts';

const maximumNameLength = 200;
const name = text(maximumNameLength);
const identifier = text(100);

export type AccountObject = { account_id: string; name: string; api_key?: string | undefined };

export const accountObject: z.ZodType<AccountObject> = z.object({
  account_id: z.string(),
  name: z.string(),
  api_key: z.string().optional(),
});

export const accountList: z.ZodType<{ accounts: AccountObject[] }> = z.object({
  accounts: z.array(accountObject),
});

export const accountParameters: ParameterSet<{ name: string }> = parameters({ name });

export function presentAccount({ accountId, name: itsName }: Account): AccountObject {
  return { account_id: accountId, name: itsName };
}

/** The account with its API key: on creation and roll only. */
export function presentAccountKey({ account, apiKey }: AccountWithKey): AccountObject {
  return { ...presentAccount(account), api_key: apiKey };
}

export type ProductObject = {
  product_key: string;
  name: string;
  recurring: boolean;
  secret?: string | undefined;
};

export const productObject: z.ZodType<ProductObject> = z.object({
  product_key: z.string(),
  name: z.string(),
  recurring: z.boolean(),
  secret: z.string().optional(),
});

export const productList: z.ZodType<{ products: ProductObject[] }> = z.object({
  products: z.array(productObject),
});

export const productParameters: ParameterSet<{
  name: string;
  recurring?: boolean | undefined;
  accountId?: string | undefined;
  productKey?: string | undefined;
  secret?: string | undefined;
}> = parameters({
  name,
  recurring: boolean.optional(),
  account_id: identifier.optional(),
  product_key: identifier.optional(),
  secret: text(200).optional(),
});

export function presentProduct({ productKey, name: itsName, recurring }: Product): ProductObject {
  return { product_key: productKey, name: itsName, recurring };
}

/** The product with its secret: on creation and roll only. */
export function presentProductSecret({ product, secret }: ProductWithSecret): ProductObject {
  return { ...presentProduct(product), secret };
}

export type CollectionObject = { collection_id: string; name: string; product_keys: readonly string[] };

export const collectionObject: z.ZodType<CollectionObject> = z.object({
  collection_id: z.string(),
  name: z.string(),
  product_keys: z.array(z.string()),
});

export const collectionParameters: ParameterSet<{
  name: string;
  productKeys: readonly string[];
  collectionId?: string | undefined;
  accountId?: string | undefined;
}> = parameters({
  name,
  product_keys: texts,
  collection_id: identifier.optional(),
  account_id: identifier.optional(),
});

export function presentCollection(collection: Collection): CollectionObject {
  return {
    collection_id: collection.collectionId,
    name: collection.name,
    product_keys: collection.productKeys,
  };
}

export type PurchaseObject = { purchase_id: string; refunded: boolean; license: LicenseObject };

export const purchaseObject: z.ZodType<PurchaseObject> = z.object({
  purchase_id: z.string(),
  refunded: z.boolean(),
  license: licenseObject,
});

export const purchaseParameters: ParameterSet<{
  productKey: string;
  buyerEmail: string;
  licenseKey?: string | null | undefined;
}> = parameters({
  product_key: identifier,
  buyer_email: text(320),
  license_key: licenseKeyText(maximumLicenseKeyLength).optional(),
});

export function presentPurchase({ purchase, license }: PurchaseWithLicense): PurchaseObject {
  return {
    purchase_id: purchase.purchaseId,
    refunded: purchase.refundedAt !== null,
    license: presentLicense(license),
  };
}
