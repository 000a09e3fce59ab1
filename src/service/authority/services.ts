import type { License } from '../../domain/license.ts';
import { asAnswered, hasTerms, statusEndsAt } from '../../domain/terms.ts';
import { notFound, done, type Result } from '../../domain/problem/problem.ts';
import type {
  Cacheable,
  CacheableResponse,
  CouponResponse,
  CouponService,
  CouponList,
  LicenseResponse,
  LicenseHistory,
  LicenseService,
  CheckoutService,
  QuoteResponse,
  RedemptionResponse,
} from '../services.ts';
import { acceptPastedKeys, withStoredCouponCode, storedCouponCode } from '../pasted-keys.ts';
import type { Lists, AuthorityReader } from '../tables.ts';
import type { Writer } from '../writer.ts';
import { quoteCoupon } from '../checkout.ts';
import { licenseOfTenant } from './license-of-tenant.ts';
import type { Cart } from '../../domain/checkout/quote.ts';
import type { Clock } from '../ports.ts';

const provenance = { freshness: 'authoritative' } as const;

const untilChanged: Cacheable = { since: -Infinity, until: Infinity, onServed: () => undefined };

export function authorityLicenseService(
  reader: AuthorityReader,
  writer: Writer,
  clock: Pick<Clock, 'now'>,
): LicenseService {
  const cacheable = (license: License): CacheableResponse => {
    if (!hasTerms(license)) return { ...answer(license), cacheable: untilChanged };
    const now = clock.now();
    const answered = asAnswered(license, now);
    return {
      ...answer(answered),
      cacheable: { ...untilChanged, since: now, until: statusEndsAt(answered) },
    };
  };
  return acceptPastedKeys({
    async verify(tenant, licenseKey): Promise<Result<LicenseResponse>> {
      const license = await licenseOfTenant(reader, tenant, licenseKey);
      return license === null ? notFound('license') : done(cacheable(license));
    },
    verifyNow(tenant, licenseKey) {
      // Without a product, the owner of the license would be another read.
      const license = tenant.productKey === null ? null : reader.licenses.get(licenseKey);
      if (license === null || license instanceof Promise || license.productKey !== tenant.productKey)
        return null;
      return cacheable(license);
    },
    async change({
      tenant,
      licenseKey,
      trigger,
      actor,
      idempotency,
      keyed = null,
    }): Promise<Result<LicenseResponse>> {
      const changed = await writer.write(
        'changeLicense',
        { tenant, licenseKey, trigger, seenRevision: keyed?.seenRevision ?? null },
        { actor, idempotency },
      );
      if (!changed.ok) return changed;
      const { appliedRevision, ...license } = changed.value;
      return done({ ...answer(license), ...(appliedRevision !== undefined && { appliedRevision }) });
    },
    async history(tenant, licenseKey, page): Promise<Result<LicenseHistory>> {
      const license =
        tenant === null
          ? await reader.licenses.get(licenseKey)
          : await licenseOfTenant(reader, tenant, licenseKey);
      if (license === null) return notFound('license');
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

export function authorityCouponService(
  reader: AuthorityReader,
  writer: Writer,
  lists: Pick<Lists, 'coupons'> = reader,
): CouponService {
  return {
    async create(accountId, terms, writeOptions): Promise<Result<CouponResponse>> {
      const created = await writer.write('createCoupon', { accountId, terms }, writeOptions);
      return created.ok ? done({ coupon: created.value, provenance }) : created;
    },
    async list(accountId, sent): Promise<Result<CouponList>> {
      const query = await withStoredCouponCode(sent, (code) => reader.coupons.byCode(accountId, code));
      const coupons = await lists.coupons.list(accountId, query, query);
      return done({ coupons, total: await lists.coupons.count(accountId, query), leftOut: 0, provenance });
    },
    async get(accountId, id): Promise<Result<CouponResponse>> {
      const coupon = await reader.coupons.get(accountId, id);
      if (coupon === null) return notFound('coupon');
      return done({ coupon, provenance });
    },
  };
}

export function authorityCheckoutService(
  reader: AuthorityReader,
  writer: Writer,
  clock: Pick<Clock, 'now'>,
): CheckoutService {
  const spelled = async (accountId: string, cart: Cart): Promise<Cart> => ({
    ...cart,
    code: await storedCouponCode(cart.code, (code) => reader.coupons.byCode(accountId, code)),
  });
  return {
    async quote(accountId, sent): Promise<Result<QuoteResponse>> {
      const cart = await spelled(accountId, sent);
      const quoted = await quoteCoupon(reader, { accountId, cart, now: clock.now() });
      return quoted.ok ? done({ quote: quoted.value, provenance }) : quoted;
    },
    async redeem(command, writeOptions): Promise<Result<RedemptionResponse>> {
      const cart = await spelled(command.accountId, command.cart);
      const redeemed = await writer.write('redeemCoupon', { ...command, cart }, writeOptions);
      return redeemed.ok ? done({ ...redeemed.value, provenance }) : redeemed;
    },
    async void(command, writeOptions): Promise<Result<unknown>> {
      const isFromAgent = writeOptions.idempotency?.keyed !== undefined;
      return await writer.write('voidRedemption', { ...command, isFromAgent }, writeOptions);
    },
  };
}
