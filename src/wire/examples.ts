/** A request and its response; generated values in the response are examples. */
export type Example = {
  path?: Readonly<Record<string, string | number>>;
  query?: Readonly<Record<string, string | number>>;
  body?: object;
  status: number;
  response: object;
};

const licenseKey = 'WTKP4-66NL5-9G2QH-MZ3XD';
const at = '2026-02-22T11:23:05+00:00';
const accountId = 'default';

const license = {
  license_key: licenseKey,
  enabled: true,
  product_link: 'RGsF',
  buyer_email: 'buyer@example.com',
  uses: 0,
  date: at,
};
const coupon = {
  id: 1,
  coupon_type: 'single',
  percent_off: 20,
  amount_off: null,
  code: 'SPRING20',
  start_date: null,
  end_date: '2124-06-01T00:00:00+00:00',
  product_key: 'RGsF',
  collection_id: null,
  minimum_purchase_amount: null,
  usage_limit: 100,
  notes: null,
};
const cart = { code: 'SPRING20', items: [{ product_key: 'RGsF', amount: 2500, quantity: 2 }] };
const quote = {
  code: 'SPRING20',
  coupon_id: 1,
  redeemable: true,
  reasons: [],
  subtotal: 5000,
  eligible_subtotal: 5000,
  discount: 1000,
  total: 4000,
  lines: [{ product_key: 'RGsF', amount: 2500, quantity: 2, discount: 1000 }],
};
const redemption = { order: '2026-0042', ...quote, redeemed_at: at, over_limit: false };
const product = {
  product_key: 'RGsF',
  account_id: accountId,
  name: 'Editor',
  recurring: false,
  archived: false,
  seats: 3,
  lease_hold_s: 7_776_000,
  lease_term_s: 2_592_000,
  lease_refresh_s: 86_400,
  lease_email: false,
  license_for: null,
  entitlements: [],
  expiry_grace_s: 0,
};
const collection = {
  collection_id: 'tools',
  account_id: accountId,
  name: 'Tools',
  product_keys: ['RGsF'],
};
const purchase = {
  purchase_id: '01a1fff5-b1c9-7133-8eee-da1984c85a6e',
  date: at,
  refunded: false,
  refunded_at: null,
  license,
};
const token = {
  token_id: '01a1fff5-acc5-7692-8824-3f99c9cf8b16',
  scopes: ['verify', 'use'],
  product_key: 'RGsF',
  account_id: accountId,
  label: 'checkout',
  created_at: at,
  last_used_at: null,
  expires_at: null,
};
const withTerms = {
  ...license,
  license_key: 'OLD-1',
  buyer_email: 'b@example.com',
  uses: 3,
  status: 'active',
  expires_at: '2124-06-01T23:59:59+00:00',
  entitlements: ['pro'],
};
const byKey = { license_key: licenseKey };

/** By operation id; sent in this order, each request gets its response. */
export const examples: Readonly<Record<string, Example>> = {
  getLiveness: { status: 200, response: { status: 'ok', reasons: [] } },
  getReadiness: { status: 200, response: { status: 'ok', reasons: [] } },
  addProduct: {
    body: { name: 'Editor', product_key: 'RGsF', secret: 'lk_prod_5cbd0f6a', seats: 3 },
    status: 201,
    response: { data: { ...product, secret: 'lk_prod_5cbd0f6a' } },
  },
  getProduct: { path: { id: 'RGsF' }, status: 200, response: { data: product } },
  listProducts: { query: { limit: 10 }, status: 200, response: { data: { products: [product] } } },
  addCollection: {
    body: { name: 'Tools', collection_id: 'tools', product_keys: ['RGsF'] },
    status: 201,
    response: { data: collection },
  },
  getCollection: { path: { id: 'tools' }, status: 200, response: { data: collection } },
  addPurchase: {
    body: { product_key: 'RGsF', buyer_email: 'buyer@example.com', license_key: licenseKey },
    status: 201,
    response: { data: purchase },
  },
  listPurchases: {
    query: { license_key: licenseKey },
    status: 200,
    response: { data: { purchases: [purchase] } },
  },
  listLicenses: {
    query: { product_key: 'RGsF' },
    status: 200,
    response: {
      data: {
        licenses: [
          {
            ...license,
            purchase_id: purchase.purchase_id,
            refunded_at: null,
            state: 'enabled',
            freshness: null,
            confirmed_at: null,
            pending: null,
            missing_since: null,
          },
        ],
      },
    },
  },
  verifyLicense: { query: byKey, status: 200, response: { data: license } },
  recordUse: { body: byKey, status: 200, response: { data: { ...license, uses: 1 } } },
  undoUse: { body: byKey, status: 200, response: { data: license } },
  disableLicense: { body: byKey, status: 200, response: { data: { ...license, enabled: false } } },
  enableLicense: { body: byKey, status: 200, response: { data: license } },
  createCoupon: {
    body: {
      coupon_type: 'single',
      product_key: 'RGsF',
      percent_off: 20,
      code: 'SPRING20',
      end_date: '2124-06-01T00:00:00Z',
      usage_limit: 100,
    },
    status: 201,
    response: { data: coupon },
  },
  listCoupons: { query: { limit: 10, offset: 0 }, status: 200, response: { data: { coupons: [coupon] } } },
  getCoupon: { path: { id: 1 }, status: 200, response: { data: coupon } },
  quoteCoupon: { body: cart, status: 200, response: { data: quote } },
  redeemCoupon: { body: { order: '2026-0042', ...cart }, status: 201, response: { data: redemption } },
  getRedemption: { path: { order: '2026-0042' }, status: 200, response: { data: redemption } },
  listRedemptions: {
    query: { coupon_id: 1 },
    status: 200,
    response: { data: { redemptions: [redemption] } },
  },
  getCheckoutCoupon: {
    path: { id: 1 },
    status: 200,
    response: { data: { ...coupon, redemptions: 1, state: 'active', orders: ['2026-0042'] } },
  },
  importLicenses: {
    body: {
      product_key: 'RGsF',
      licenses: [{ license_key: 'OLD-1', buyer_email: 'b@example.com', uses: 3 }],
    },
    status: 200,
    response: { data: { imported: 1, unchanged: 0, ignored: [], rejected: [] } },
  },
  updateLicense: {
    path: { key: 'OLD-1' },
    body: { expires_at: '2124-06-01', entitlements: ['pro'] },
    status: 200,
    response: { data: withTerms },
  },
  renewLicense: {
    path: { key: 'OLD-1' },
    body: { for: '1y' },
    status: 200,
    response: { data: { ...withTerms, expires_at: '2125-06-01T23:59:59+00:00' } },
  },
  issueToken: {
    body: { scopes: ['verify', 'use'], product_key: 'RGsF', label: 'checkout' },
    status: 201,
    response: { data: { ...token, token: 'lk_tok_0d2f' } },
  },
};
