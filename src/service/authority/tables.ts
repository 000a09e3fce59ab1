import type { Account } from '../../domain/account.ts';
import type { Collection } from '../../domain/collection.ts';
import type { Coupon, CouponFilter, CouponTerms } from '../../domain/checkout/coupon.ts';
import type { License, LicenseTrigger, SoldLicense } from '../../domain/license.ts';
import type { Page } from '../../domain/page.ts';
import type { Tenant, TenantFilter } from '../../domain/access/principal.ts';
import type { Product } from '../../domain/product.ts';
import type { Purchase, PurchaseWithLicense } from '../../domain/purchase.ts';

export interface AccountReads {
  get(accountId: string): Account | null;
  byKeyDigest(digest: string): Account | null;
  list(filter: TenantFilter, page: Page): Account[];
  count(filter: TenantFilter): number;
}
export interface AccountTable extends AccountReads {
  add(account: Account, keyDigest: string): void;
  keyDigest(accountId: string): string | null;
  setKeyDigest(accountId: string, digest: string): void;
}

/** Undefined members do not filter. */
export type ProductFilter = TenantFilter & { archived?: boolean | undefined };
export interface ProductReads {
  get(productKey: string): Product | null;
  bySecretDigest(digest: string): Product | null;
  list(filter: ProductFilter, page: Page): Product[];
  count(filter: ProductFilter): number;
}
export interface ProductTable extends ProductReads {
  add(product: Product, secretDigest: string): void;
  secretDigest(productKey: string): string | null;
  setSecretDigest(productKey: string, digest: string): void;
  put(product: Product): void;
}

export interface CollectionReads {
  get(collectionId: string): Collection | null;
  list(filter: TenantFilter, page: Page): Collection[];
  count(filter: TenantFilter): number;
}
export interface CollectionTable extends CollectionReads {
  add(collection: Collection): void;
  put(collection: Collection): void;
}

/** Undefined members do not filter; `since` and `until` are epoch ms, both included. */
export type PurchaseFilter = TenantFilter & {
  productKey?: string | undefined;
  licenseKey?: string | undefined;
  /** Ignores case. */
  buyerEmail?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
  refunded?: boolean | undefined;
};
export interface PurchaseReads {
  get(purchaseId: string): Purchase | null;
  /** In the order of ids, after an id. */
  after(filter: ExportFilter, purchaseId: string, limit: number): PurchaseWithLicense[];
  /** Latest first. */
  list(filter: PurchaseFilter, page: Page): PurchaseWithLicense[];
  count(filter: PurchaseFilter): number;
}
export interface PurchaseTable extends PurchaseReads {
  add(purchase: Purchase): void;
  setRefunded(purchase: Pick<Purchase, 'purchaseId' | 'refundedAt'>): void;
}

/** Undefined members do not filter. */
export type LicenseFilter = TenantFilter & {
  productKey?: string | undefined;
  licenseKey?: string | undefined;
  enabled?: boolean | undefined;
  /** Ignores case. */
  buyerEmail?: string | undefined;
};
export interface LicenseReads {
  get(licenseKey: string): License | null;
  /** In the order of keys, after a key. */
  after(filter: ExportFilter, licenseKey: string, limit: number): License[];
  list(filter: LicenseFilter, page: Page): SoldLicense[];
  count(filter: LicenseFilter): number;
}
/** `remembered`: the history entry, with epoch ms; null: no history. */
export type LicenseChange = {
  tenant: Tenant;
  licenseKey: string;
  trigger: Exclude<LicenseTrigger, 'refund'>;
  remembered: { at: number; credential: string } | null;
};
export interface LicenseTable extends LicenseReads {
  /** Returns false if the key is taken. */
  add(license: License): boolean;
  /** Writes no index, because no indexed column changes. */
  setState(license: Pick<License, 'licenseKey' | 'uses' | 'enabled'>): void;
  /**
   * Changes a license and adds the change to its history, in one statement; null if the tenant has no such license.
   */
  change(change: LicenseChange): { before: License; after: License } | null;
}

export type ExportFilter = TenantFilter & { productKey?: string | undefined };

export interface CouponReads {
  /** In the order of ids, after an id. */
  after(accountId: string, id: number, limit: number): Coupon[];
  get(accountId: string, id: number): Coupon | null;
  byCode(accountId: string, code: string): Coupon | null;
  list(accountId: string, page: Page, filter?: CouponFilter): Coupon[];
  count(accountId: string, filter?: CouponFilter): number;
}
export interface CouponTable extends CouponReads {
  /** Without `id`, generates one. */
  add(accountId: string, terms: CouponTerms, id?: number | null): Coupon;
  /** Whether any account has a coupon with this id. */
  isTaken(id: number): boolean;
  put(coupon: Coupon): void;
  remove(id: number): void;
}
