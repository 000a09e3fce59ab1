import { defaultAccountId } from '../../../domain/access/principal.ts';
import { licenseKeyBytes, licenseKeyFrom, type License } from '../../../domain/license.ts';
import { dayMs, hourMs, minuteMs } from '../../../domain/time.ts';
import {
  demoCoupons,
  openShop,
  type DemoCoupon,
  type DemoProduct,
  type DemoShop,
  buyers,
  demoBuyer,
} from './shop.ts';
import { deviceEvents, type Sale } from './devices.ts';
import { writeMinutes } from './minutes.ts';
import { SeededRandom, fillStore, type DemoEvent, type PastWriter } from './past-writer.ts';

/** What the demo data needs to know outside of the store. */
export type DemoYear = {
  shop: Pick<DemoShop, 'products' | 'secrets'>;
  /** The licenses as the authority has them, the most recently sold first. */
  licenses: readonly License[];
};

export const yearMs: number = 365 * dayMs;
type Year = {
  writer: PastWriter;
  random: SeededRandom;
  shop: DemoShop;
  coupons: readonly DemoCoupon[];
  start: number;
  end: number;
};

/** Fills the store of an authority with a year of sales that ends at `end`. `productKey`: the product of the sandbox. */
export async function writeDemoYear(
  directory: string,
  { productKey, end }: { productKey: string; end: number },
): Promise<DemoYear> {
  return await fillStore({ directory, role: 'authority' }, async (writer) => {
    const start = end - yearMs;
    const random = new SeededRandom(20_260_305);
    const shop = await openShop(writer, productKey, start + hourMs);
    const year: Year = { writer, random, shop, coupons: demoCoupons(productKey, start, end), start, end };
    const sales = salesOf(year);
    const events = [
      ...couponEvents(year),
      ...sales.flatMap((sale, index) => saleEvents(year, sale, 10_001 + index)),
      ...sales.flatMap((sale) => deviceEvents({ writer, random, end }, sale)),
      ...officeEvents(year),
    ];
    for (const { at, run } of events.toSorted((one, other) => one.at - other.at)) if (at < end) await run(at);
    await writeMinutes({ writer, random, end, outage: null, busiest: 110 });
    await writer.run('markTime', { mark: { at: end - minuteMs, isConfirmed: false } }, { at: end });
    const licenses = sales
      .toReversed()
      .flatMap(({ licenseKey }) => writer.reader.licenses.get(licenseKey) ?? []);
    return { shop, licenses };
  });
}

/** The sales grow over the year; fewer on weekends, more while a campaign runs. */
function salesOf({ random, shop, coupons, start, end }: Year): Sale[] {
  const sales: Sale[] = [];
  for (let day = 1; day < 365; day += 1) {
    const morning = start + day * dayMs;
    const isWeekend = [0, 6].includes(new Date(morning).getUTCDay());
    const campaign = coupons.filter((coupon) => isRunning(coupon, morning) && coupon.popularity > 0.2).length;
    const expected = (1.5 + (4.5 * day) / 365) * (isWeekend ? 0.5 : 1) * (1 + campaign * 0.9);
    for (let count = Math.round(expected * (0.5 + random.fraction())); count > 0; count -= 1) {
      const at = morning + Math.round((6 + random.fraction() * 17) * hourMs);
      if (at < end - hourMs) sales.push(saleAt(random, shop, at));
    }
  }
  sales.push({ ...demoBuyer, productKey: shop.products[0].productKey, soldAt: end - 96 * dayMs });
  return sales.sort((one, other) => one.soldAt - other.soldAt);
}

function saleAt(random: SeededRandom, { products }: DemoShop, soldAt: number): Sale {
  const isRefunded = random.chance(0.035);
  return {
    licenseKey: licenseKeyFrom(random.bytes(licenseKeyBytes)),
    productKey: productOf(random, products).productKey,
    ...random.pick(buyers),
    soldAt,
    refundedAt: isRefunded ? soldAt + Math.round((0.2 + random.fraction() * 13) * dayMs) : null,
  };
}

function productOf(random: SeededRandom, products: DemoShop['products']): DemoProduct {
  let drawn = random.fraction();
  return products.find(({ popularity }) => (drawn -= popularity) < 0) ?? products[0];
}

function isRunning({ terms, createdAt }: DemoCoupon, at: number): boolean {
  return at > Math.max(createdAt, terms.startAt ?? 0) && at < (terms.endAt ?? Infinity);
}

function couponEvents({ writer, coupons, shop, start }: Year): DemoEvent[] {
  const actor = shop.actors.shop;
  const created = coupons.map(({ terms, createdAt }) => ({
    at: createdAt,
    run: (at: number) => writer.run('createCoupon', { accountId: defaultAccountId, terms }, { at, actor }),
  }));
  // A code that was published by mistake.
  const mistake = {
    code: 'INTERNAL90',
    scope: { type: 'multi' },
    discount: { type: 'percent', percentOff: 90 },
  };
  const unlimited = { startAt: null, endAt: null, minimumPurchaseAmount: null, usageLimit: null };
  const terms = { ...unlimited, ...mistake, notes: 'For tests only' } as DemoCoupon['terms'];
  let id = 0;
  return [
    ...created,
    {
      at: start + 110 * dayMs,
      run: async (at) => {
        const coupon = await writer.run(
          'createCoupon',
          { accountId: defaultAccountId, terms },
          { at, actor },
        );
        ({ id } = coupon);
      },
    },
    {
      at: start + 111 * dayMs,
      run: (at) =>
        writer.run('endCoupon', { accountId: defaultAccountId, id }, { at, actor: 'token:admin.token' }),
    },
  ];
}

/** The sale, its coupon, its uses, and what support does about it. */
function saleEvents(year: Year, sale: Sale, order: number): DemoEvent[] {
  const { writer, random, shop } = year;
  const { licenseKey, productKey, buyerEmail, soldAt, refundedAt } = sale;
  const actor = shop.actors.shop;
  let purchaseId = '';
  const sell = async (at: number): Promise<void> => {
    const purchase = { productKey, buyerEmail, licenseKey, soldAt: null, uses: 0, enabled: true };
    ({ purchaseId } = (await writer.run('addPurchase', purchase, { at, actor })).purchase);
  };
  const events: DemoEvent[] = [{ at: soldAt, run: sell }, ...useEvents(year, sale)];
  const coupon = year.coupons.find((each) => isRunning(each, soldAt) && random.chance(each.popularity));
  if (coupon !== undefined) {
    events.push({
      at: soldAt - 20_000,
      run: (at) => redeem(year, { code: coupon.terms.code, sale, order }, at),
    });
  }
  if (refundedAt !== null) {
    const run = (at: number) =>
      writer.run('refundPurchase', { purchaseId }, { at, actor: shop.actors.support });
    events.push({ at: refundedAt, run });
  } else if (random.chance(0.012)) {
    events.push(...disputeEvents(year, sale));
  }
  return events;
}

/** Redeems a coupon if it fits the cart; some carts have a second product. */
async function redeem(
  { writer, random, shop }: Year,
  { code, sale, order }: { code: string; sale: Sale; order: number },
  at: number,
): Promise<void> {
  const keys = random.chance(0.2) ? [sale.productKey, 'kT3aP'] : [sale.productKey];
  const lines = [...new Set(keys)].map((productKey) => {
    const price = shop.products.find((product) => product.productKey === productKey)?.price ?? 0;
    return { productKey, amount: price, quantity: 1, collectionIds: [], recurring: false };
  });
  const command = {
    accountId: defaultAccountId,
    order: `A-${order}`,
    cart: { code, currency: 'EUR', lines },
  };
  await writer.run('redeemCoupon', command, { at, actor: shop.actors.shop }).catch(() => undefined);
}

/** Each start of the software on another machine counts a use. */
function useEvents(
  { writer, random, end }: Year,
  { licenseKey, productKey, soldAt, refundedAt }: Sale,
): DemoEvent[] {
  const until = refundedAt ?? end;
  const tenant = { accountId: defaultAccountId, productKey };
  const count = random.whole(0, 4);
  return Array.from({ length: count }, (_, index) => {
    const share = index === 0 ? random.fraction() * 0.02 : random.fraction();
    const trigger = random.chance(0.06) ? 'decrease' : 'usage';
    return {
      at: soldAt + 10 * minuteMs + Math.round(share * (until - soldAt - 20 * minuteMs)),
      run: (at: number) =>
        writer.run('changeLicense', { tenant, licenseKey, trigger }, { at, actor: `product:${productKey}` }),
    };
  });
}

/** Support disables a license, and often enables it again. */
function disputeEvents(
  { writer, random, shop, end }: Year,
  { licenseKey, productKey, soldAt }: Sale,
): DemoEvent[] {
  const tenant = { accountId: defaultAccountId, productKey };
  const change = (trigger: 'disable' | 'enable') => (at: number) =>
    writer.run('changeLicense', { tenant, licenseKey, trigger }, { at, actor: shop.actors.support });
  const at = soldAt + Math.round(random.fraction() * (end - soldAt));
  const isSettled = random.chance(0.6);
  const settled = { at: at + Math.round((1 + random.fraction() * 4) * dayMs), run: change('enable') };
  return [{ at, run: change('disable') }, ...(isSettled ? [settled] : [])];
}

/** What the seller does now and then. */
function officeEvents({ writer, shop, start, end }: Year): DemoEvent[] {
  const actor = 'token:admin.token';
  const rotate = async (at: number): Promise<void> => {
    const command = { productKey: 'm9ZdQ', oldUntil: at + 7 * dayMs };
    const { product, secret } = await writer.run('rotateProductSecret', command, { at, actor });
    shop.secrets.set(product.productKey, secret);
  };
  const reload = (detail: string) => (at: number) =>
    writer.run('recordProcessAct', { act: 'reload', detail }, { at, actor });
  return [
    { at: start + 90 * dayMs, run: reload('the configuration was read again') },
    { at: start + 210 * dayMs, run: rotate },
    { at: end - 9 * dayMs, run: reload('the configuration was read again') },
  ];
}
