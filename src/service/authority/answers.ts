import type { License } from '../../domain/license.ts';
import { notFound } from '../../domain/problem/not-found.ts';
import { done, type Result } from '../../domain/problem/problem.ts';
import type {
  Cacheable,
  CouponResponse,
  Couponing,
  CouponList,
  LicenseResponse,
  LicenseHistory,
  Licensing,
} from '../answers.ts';
import type { Lists } from '../lists.ts';
import type { Writer } from '../writer.ts';
import { inKnownCode } from '../checkout/quote.ts';
import { findPlainKeys } from '../license-spelling.ts';
import { licenseNotFound, licenseOfTenant } from '../access/license-access.ts';
import type { AuthorityReader } from '../tables.ts';

const provenance = { freshness: 'authoritative' } as const;

const untilChanged: Cacheable = { since: -Infinity, until: Infinity, onServed: () => undefined };

export function authorityLicensing(reader: AuthorityReader, writer: Writer): Licensing {
  return findPlainKeys({
    async verify(tenant, licenseKey): Promise<Result<LicenseResponse>> {
      const license = await licenseOfTenant(reader, tenant, licenseKey);
      return license === null ? licenseNotFound() : done({ ...answer(license), cacheable: untilChanged });
    },
    verifyNow(tenant, licenseKey) {
      // Without a product, the owner of the license would be another read.
      const license = tenant.productKey === null ? null : reader.licenses.get(licenseKey);
      if (license === null || license instanceof Promise || license.productKey !== tenant.productKey)
        return null;
      return { ...answer(license), cacheable: untilChanged };
    },
    async change({ tenant, licenseKey, trigger, actor, idempotency }): Promise<Result<LicenseResponse>> {
      const changed = await writer.write(
        'changeLicense',
        { tenant, licenseKey, trigger },
        { actor, idempotency },
      );
      return changed.ok ? done(answer(changed.value)) : changed;
    },
    async history(tenant, licenseKey, page): Promise<Result<LicenseHistory>> {
      const license =
        tenant === null
          ? await reader.licenses.get(licenseKey)
          : await licenseOfTenant(reader, tenant, licenseKey);
      if (license === null) return licenseNotFound();
      const { history } = reader;
      return done({
        changes: await history.list(licenseKey, page),
        total: await history.count(licenseKey, page.since),
      });
    },
  });
}

function answer(license: License): LicenseResponse {
  return { license, productKey: license.productKey, provenance };
}

export function authorityCouponing(
  reader: AuthorityReader,
  writer: Writer,
  lists: Pick<Lists, 'coupons'> = reader,
): Couponing {
  return {
    async create(accountId, terms, writeOptions): Promise<Result<CouponResponse>> {
      const created = await writer.write('createCoupon', { accountId, terms }, writeOptions);
      return created.ok ? done({ coupon: created.value, provenance }) : created;
    },
    async list(accountId, sent): Promise<Result<CouponList>> {
      const query = await inKnownCode(sent, (code) => reader.coupons.byCode(accountId, code));
      const coupons = await lists.coupons.list(accountId, query, query);
      return done({ coupons, total: await lists.coupons.count(accountId, query), provenance });
    },
    async get(accountId, id): Promise<Result<CouponResponse>> {
      const coupon = await reader.coupons.get(accountId, id);
      if (coupon === null) return notFound('coupon');
      return done({ coupon, provenance });
    },
  };
}
