import type { FastifyInstance, InjectOptions } from 'fastify';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { dialectNames, type DialectName } from '../../src/domain/header-names.ts';
import { dialects } from '../support/stores/dialects.ts';
import {
  authorityCheckoutService,
  authorityCouponService,
  authorityLicenseService,
} from '../../src/service/authority/services.ts';
import { StorageError, type StorageFault } from '../../src/service/ports.ts';
import { adminToken, apiKey, openApp, serverOf, type TestApp } from '../support/app/http-app.ts';
import { StepsAfterCommit } from '../support/app/steps-after-commit.ts';

const operator = { authorization: `Bearer ${adminToken}` };
const secret = 'secret-of-the-editor-0123456789';
const faults: readonly StorageFault[] = ['full', 'failed', 'commit_failed', 'unavailable', 'unknown'];
const cart = { code: 'SPRING', items: [{ product_key: 'EDITOR', amount: 1_000 }] };

/** Creates what a change needs; returns the request of the change. */
type Prepare = (shop: Shop) => Promise<InjectOptions>;

/** An authority that sells one product, and whose steps after a commit can fail. */
class Shop implements AsyncDisposable {
  readonly steps: StepsAfterCommit = new StepsAfterCommit();
  readonly server: FastifyInstance;
  readonly #test: TestApp;
  #made = 0;

  constructor(opened: TestApp, dialect: DialectName) {
    this.#test = opened;
    const reader = this.steps.watch(opened.app.reader);
    const writer = this.steps.writer(opened.app.writer);
    this.server = serverOf({
      ...opened.app,
      dialect: dialects[dialect],
      reader,
      lists: reader,
      writer,
      licenseService: authorityLicenseService(reader, writer, { now: () => Date.now() }),
      couponService: authorityCouponService(reader, writer),
      checkout: authorityCheckoutService(reader, writer, { now: () => Date.now() }),
      productName: async (productKey) => (await reader.products.get(productKey))?.name ?? null,
    });
  }

  /** A name that is unique in this shop. */
  name(): string {
    this.#made += 1;
    return `NAME-${this.#made}`;
  }

  async make(path: string, payload: object): Promise<Record<string, string>> {
    const { statusCode, body } = await this.server.inject({
      method: 'POST',
      url: path,
      headers: path.startsWith('/admin') ? operator : { 'service-api-key': apiKey },
      payload,
    });
    if (statusCode !== 201) throw new Error(`${path}: ${body}`);
    return (JSON.parse(body) as { data: Record<string, string> }).data;
  }

  sell(licenseKey: string): Promise<Record<string, string>> {
    const sale = { product_key: 'EDITOR', buyer_email: 'a@example.com', license_key: licenseKey };
    return this.make('/admin/v1/purchases', sale);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.close();
    await this.#test[Symbol.asyncDispose]();
  }
}

async function openShop(dialect: DialectName): Promise<Shop> {
  const shop = new Shop(await openApp(), dialect);
  await shop.make('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR', secret });
  return shop;
}

/** The change, the failing step after its commit, and the error. */
type Failure = { name: string; index: number; fault: StorageFault; isKeyed: boolean };

const license =
  (kind: string): Prepare =>
  async (shop) => {
    const licenseKey = shop.name();
    await shop.sell(licenseKey);
    const headers = { 'product-secret-key': secret };
    return { method: 'PUT', url: `/api/v2/license/${kind}`, headers, payload: { license_key: licenseKey } };
  };

const post =
  (url: string, payload: (shop: Shop) => object): Prepare =>
  async (shop) => ({
    method: 'POST',
    url,
    headers: url.startsWith('/admin') ? operator : { 'service-api-key': apiKey },
    payload: payload(shop),
  });

const addCoupon = (shop: Shop, code: string): Promise<Record<string, string>> =>
  shop.make('/api/v2/coupons', { coupon_type: 'multi', percent_off: 10, code });

const changes: Readonly<Record<string, Prepare>> = {
  usage: license('usage'),
  decrease: license('decrease'),
  disable: license('disable'),
  enable: license('enable'),
  'add a product': post('/admin/v1/products', (shop) => ({ name: 'Player', product_key: shop.name() })),
  'update a product': async () => ({
    method: 'PUT',
    url: '/admin/v1/products/EDITOR',
    headers: operator,
    payload: { name: 'Editor', recurring: false, archived: false },
  }),
  sell: post('/admin/v1/purchases', (shop) => ({
    product_key: 'EDITOR',
    buyer_email: 'a@example.com',
    license_key: shop.name(),
  })),
  refund: async (shop) => {
    const { purchase_id: id } = await shop.sell(shop.name());
    return { method: 'POST', url: `/admin/v1/purchases/${id}/refund`, headers: operator };
  },
  'import licenses': post('/admin/v1/licenses/import', (shop) => ({
    product_key: 'EDITOR',
    licenses: [{ license_key: shop.name(), buyer_email: 'a@example.com', date: '2026-01-02T03:04:05Z' }],
  })),
  'issue a token': post('/admin/v1/tokens', () => ({ scopes: ['verify'], product_key: 'EDITOR' })),
  'create a coupon': post('/api/v2/coupons', (shop) => ({
    coupon_type: 'multi',
    percent_off: 10,
    code: shop.name(),
  })),
  'redeem a coupon': async (shop) => {
    const code = shop.name();
    await addCoupon(shop, code);
    const payload = { order: shop.name(), ...cart, code };
    return {
      method: 'POST',
      url: '/agent/v1/redemptions',
      headers: { 'service-api-key': apiKey },
      payload,
    };
  },
  'end a coupon': async (shop) => {
    const { id } = await addCoupon(shop, shop.name());
    return { method: 'POST', url: `/admin/v1/coupons/${id}/end`, headers: operator };
  },
};

test.each(dialectNames)(
  'a committed change on an authority is answered with a success whichever later step fails (%s)',
  async (dialect) => {
    await using shop = await openShop(dialect);
    const failure: fc.Arbitrary<Failure> = fc.record({
      name: fc.constantFrom(...Object.keys(changes)),
      index: fc.nat({ max: 2 }),
      fault: fc.constantFrom(...faults),
      isKeyed: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(failure, async ({ name, index, fault, isKeyed }) => {
        const request = await changes[name]?.(shop);
        if (request === undefined) throw new Error(`${name} is not a change`);
        const key = isKeyed ? { 'idempotency-key': shop.name() } : {};
        const keyed = { ...request, headers: { ...request.headers, ...key } };
        shop.steps.arm({ index, error: new StorageError(fault, null) });
        const { statusCode, body } = await shop.server.inject(keyed);
        expect(shop.steps.isCommitted).toBe(true);
        expect(statusCode, body).toBeLessThan(300);
        shop.steps.arm(null);
      }),
      {
        numRuns: 100,
        examples: Object.keys(changes).map((name): [Failure] => [
          { name, index: 0, fault: 'unavailable', isKeyed: true },
        ]),
      },
    );
  },
);

test('the error of a read that the storage did not answer does not say that nothing was changed', async () => {
  await using opened = await openApp();
  const list = (): never => {
    throw new StorageError('unreadable', null);
  };
  const reader = { ...opened.app.reader, products: { ...opened.app.reader.products, list } };
  const server = serverOf({ ...opened.app, reader, lists: reader });
  const answer = await server.inject({ url: '/admin/v1/products', headers: operator });
  expect([answer.statusCode, answer.json()]).toEqual([
    503,
    expect.objectContaining({ code: 'storage_unavailable', detail: 'The storage cannot be read now.' }),
  ]);
});
