import { done, refuse, type Result } from '../../domain/problem.ts';
import type { CouponAnswer, Couponing, LicenseAnswer, Licensing } from '../answers.ts';
import type { Writer } from '../writer.ts';
import { licenseNotFound, reachableLicense } from '../access/reach.ts';
import type { Reader } from '../tables.ts';

const provenance = { freshness: 'authoritative' } as const;

/** Licenses on the authority: the store is the truth. */
export function authorityLicensing(reader: Reader, writer: Writer): Licensing {
  return {
    verify: (reach, licenseKey) => {
      const license = reachableLicense(reader, reach, licenseKey);
      return Promise.resolve(license === null ? licenseNotFound() : done({ license, provenance }));
    },
    async change({ reach, licenseKey, trigger, idempotency }): Promise<Result<LicenseAnswer>> {
      const changed = await writer.write('changeLicense', { reach, licenseKey, trigger }, { idempotency });
      return changed.ok ? done({ license: changed.value, provenance }) : changed;
    },
  };
}

/** Coupons on the authority. */
export function authorityCouponing(reader: Reader, writer: Writer): Couponing {
  return {
    async create(accountId, terms, idempotency): Promise<Result<CouponAnswer>> {
      const created = await writer.write('createCoupon', { accountId, terms }, { idempotency });
      return created.ok ? done({ coupon: created.value, provenance }) : created;
    },
    list: (accountId, page) => {
      const coupons = reader.coupons.list(accountId, page);
      return Promise.resolve(done({ coupons, total: reader.coupons.count(accountId), provenance }));
    },
    get: (accountId, id) => {
      const coupon = reader.coupons.get(accountId, id);
      return Promise.resolve(coupon === null ? couponNotFound() : done({ coupon, provenance }));
    },
  };
}

function couponNotFound(): Result<never> {
  return refuse('coupon_not_found', 'There is no coupon with this id.');
}
