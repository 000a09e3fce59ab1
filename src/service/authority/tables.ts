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
  /** Changes its name and products. */
  put(collection: Collection): void;
}

/** Undefined members do not filter; `since` and `until` are epoch ms, both included. */
export type PurchaseFilter = TenantFilter & {
  productKey?: string | undefined;
  licenseKey?: string | undefined;
  /** Compared without case. */
  buyerEmail?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
  refunded?: boolean | undefined;
};
export interface PurchaseReads {
  get(purchaseId: string): Purchase | null;
  /** In the order of their ids, those behind one. */
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
  /** Compared without case. */
  buyerEmail?: string | undefined;
};
export interface LicenseReads {
  get(licenseKey: string): License | null;
  /** In the order of their keys, those behind one. */
  after(filter: ExportFilter, licenseKey: string, limit: number): License[];
  list(filter: LicenseFilter, page: Page): SoldLicense[];
  count(filter: LicenseFilter): number;
}
/** A change of a license that a credential reaches; `remembered`: when (epoch ms) and by whom, for its history. */
export type LicenseChange = {
  tenant: Tenant;
  licenseKey: string;
  trigger: Exclude<LicenseTrigger, 'refund'>;
  remembered: { at: number; credential: string } | null;
};
export interface LicenseTable extends LicenseReads {
  /** Adds a license unless its key is taken; says whether it did. */
  add(license: License): boolean;
  /** Writes what changes of a license move, and touches none of its indexes. */
  setState(license: Pick<License, 'licenseKey' | 'uses' | 'enabled'>): void;
  /**
   * Changes one by `changeLicense` and adds to its history what is to be remembered and has changed, in one
   * step; null when the credential reaches no such license.
   */
  change(change: LicenseChange): { before: License; after: License } | null;
}

/** What an export is limited to. */
export type ExportFilter = TenantFilter & { productKey?: string | undefined };

export interface CouponReads {
  /** In the order of their ids, those behind one. */
  after(accountId: string, id: number, limit: number): Coupon[];
  get(accountId: string, id: number): Coupon | null;
  byCode(accountId: string, code: string): Coupon | null;
  list(accountId: string, page: Page, filter?: CouponFilter): Coupon[];
  count(accountId: string, filter?: CouponFilter): number;
}
export interface CouponTable extends CouponReads {
  /** `id`: the one that it is to have; without, a new one. */
  add(accountId: string, terms: CouponTerms, id?: number | null): Coupon;
  /** Whether any account has a coupon with this id. */
  isTaken(id: number): boolean;
  /** Replaces its terms. */
  put(coupon: Coupon): void;
  remove(id: number): void;
}
