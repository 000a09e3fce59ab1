/** The record behind a license key (specification 2.2). */
export type License = {
  licenseKey: string;
  /** `product_link` on the wire. */
  productKey: string;
  buyerEmail: string;
  uses: number;
  enabled: boolean;
  /** Epoch ms. */
  createdAt: number;
  /** Further members from an agent's upstream, unchanged. */
  extra?: LicenseExtra;
};

/** Members beyond specification 2.2, such as the name of the product; at most 1 KiB of JSON. */
export type LicenseExtra = Readonly<Record<string, unknown>>;

/** A license and its sale. Null: the license was not sold here, or not refunded. */
export type SoldLicense = License & { purchaseId: string | null; refundedAt: number | null };

/** The name of the product at the upstream; null if the upstream has not sent it. */
export function upstreamProductName({ extra }: License): string | null {
  const name = extra?.['product_name'];
  return typeof name === 'string' ? name : null;
}

/** The maximum `uses` of a new, imported or upstream license. Counts are exact up to 2^53. */
export const maxInitialUses = 1_000_000_000_000_000;

/** What can happen to a license (specification 3.1). */
export type LicenseTrigger = 'usage' | 'decrease' | 'enable' | 'disable' | 'refund';

type LicenseState = 'enabled' | 'disabled';

/** The transitions of `enabled`; a missing cell does not compile. */
export const licenseTransitions: Record<LicenseState, Record<LicenseTrigger, LicenseState>> = {
  enabled: {
    usage: 'enabled',
    decrease: 'enabled',
    enable: 'enabled',
    disable: 'disabled',
    refund: 'disabled',
  },
  disabled: {
    usage: 'disabled',
    decrease: 'disabled',
    enable: 'enabled',
    disable: 'disabled',
    refund: 'disabled',
  },
};

/** The count after a trigger. A decrease stops at 0. */
export function countAfter(uses: number, trigger: LicenseTrigger): number {
  switch (trigger) {
    case 'usage':
      return uses + 1;
    case 'decrease':
      return uses > 0 ? uses - 1 : uses;
    case 'enable':
    case 'disable':
    case 'refund':
      return uses;
    default:
      return trigger satisfies never;
  }
}

/** Whether a change had no effect, such as enabling an enabled license or decreasing a count of 0. */
export function isSameState(before: License, after: License): boolean {
  return before.uses === after.uses && before.enabled === after.enabled;
}

/** The license after a trigger; the only function that changes one. */
export function changeLicense(license: License, trigger: LicenseTrigger): License {
  const state = licenseTransitions[license.enabled ? 'enabled' : 'disabled'][trigger];
  return { ...license, enabled: state === 'enabled', uses: countAfter(license.uses, trigger) };
}
