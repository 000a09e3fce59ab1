import { type SoldKey, StandIn, textOf, type StandInAnswer, type StandInCall } from './stand-in.ts';

/*
 * A stand-in for Gumroad's license API. It follows the order of checks and the texts of Gumroad's own controllers
 * (antiwork/gumroad, app/controllers/api/v2/licenses_controller.rb and sales_controller.rb), and has nothing in common with the client of an agent.
 */

export interface GumroadProduct {
  /** The external id, which `product_id` names. */
  readonly productId: string;
  readonly permalink?: string;
  /** Whether a call must name `product_id`: Gumroad's products since 2023. Default: true. */
  readonly needsProductId?: boolean;
}

export interface GumroadSale {
  readonly licenseKey: string;
  /** Default: the first product. */
  readonly productId?: string;
  readonly email?: string;
  readonly uses?: number;
  readonly isDisabled?: boolean;
  readonly isRevoked?: boolean;
  readonly lateMs?: number;
  /** Members of the purchase, such as `refunded` and `subscription_ended_at`. */
  readonly purchase?: Readonly<Record<string, unknown>>;
}

type License = SoldKey & {
  product: Required<GumroadProduct>;
  uses: number;
  isDisabled: boolean;
  isRevoked: boolean;
  purchase: Record<string, unknown>;
};

type CallName = 'sales' | 'verify' | 'enable' | 'disable' | 'decrement_uses_count' | 'rotate';

type Call = StandInCall<CallName>;

const salesOfPage = 10;

const unknown = refused('That license does not exist for the provided product.');

function refused(message: string, status = 404): StandInAnswer {
  return { status, body: { success: false, message } };
}

export class GumroadStore extends StandIn<CallName, License> {
  /** The access token; another token has no scope. */
  readonly accessToken: string;
  /** The scopes of the access token. */
  scopes: ReadonlySet<string> = new Set(['edit_products', 'view_sales']);
  readonly #products: ReadonlyMap<string, Required<GumroadProduct>>;
  #rotated = 0;

  constructor(
    products: readonly GumroadProduct[],
    { accessToken = 'gumroad-token', now }: { accessToken?: string; now?: () => number } = {},
  ) {
    super(now);
    this.accessToken = accessToken;
    const complete = products.map((each) => ({ permalink: 'demo', needsProductId: true, ...each }));
    this.#products = new Map(complete.map((each) => [each.productId, each]));
  }

  sell({ licenseKey, productId, email = 'buyer@example.com', lateMs = 0, ...sale }: GumroadSale): void {
    const product = this.#products.get(productId ?? this.#products.keys().next().value ?? '');
    if (product === undefined) throw new Error('there is no such product');
    this.sold.set(this.fold(licenseKey), {
      licenseKey,
      product,
      uses: 0,
      isDisabled: false,
      isRevoked: false,
      shownFrom: this.now() + lateMs,
      ...sale,
      purchase: purchaseOf(licenseKey, product, { email, ...sale.purchase }),
    });
  }

  refund(licenseKey: string): void {
    this.license(licenseKey).purchase['refunded'] = true;
  }

  protected nameOf(method: string, path: string): CallName | null {
    if (method === 'GET' && /^(?:\/api)?\/v2\/sales$/.test(path)) return 'sales';
    const name = /^(?:\/api)?\/v2\/licenses\/(\w+)$/.exec(path)?.[1] ?? '';
    return methods.get(name) === method ? (name as CallName) : null;
  }

  /** Keys are found in any letter case, and with spaces behind them. */
  protected fold(licenseKey: string): string {
    return licenseKey.trimEnd().toUpperCase();
  }

  protected carryOut(call: Call): StandInAnswer {
    const { name, parameters } = call;
    if (name === 'verify') {
      const names = ['license_key', 'product_id', 'product_permalink', 'id', 'link_id'];
      const wrong = names.find((each) => isPresent(parameters[each]) && typeof parameters[each] !== 'string');
      if (wrong !== undefined) return refused(`The '${wrong}' parameter must be a string.`, 400);
    } else {
      const [, bearer] = /^Bearer (.+)$/.exec(call.headers.authorization ?? '') ?? [];
      const token = parameters['access_token'] ?? bearer;
      if (token === undefined) return { status: 401, body: null };
      const scope = name === 'sales' ? 'view_sales' : 'edit_products';
      if (token !== this.accessToken || !this.scopes.has(scope)) return { status: 403, body: null };
    }
    if (name === 'sales') return this.#sales(parameters);
    const license = this.#find(call);
    if (license === 'product_id') return needsProductId(this.license(call.licenseKey).product.productId);
    if (license === null) return unknown;
    if (license.isRevoked) return refused('Access to the purchase associated with this license has expired.');
    return this.#change(call, license);
  }

  /** Ten sales from the newest on, also those of keys that no verify shows yet. */
  #sales(parameters: Call['parameters']): StandInAnswer {
    const productId = textOf(parameters['product_id']);
    const pageKey = textOf(parameters['page_key']);
    const isWrong = productId !== '' && !this.#products.has(productId);
    if (isWrong) return { status: 400, body: { status: 400, error: 'Invalid product ID.' } };
    const [, at = ''] = /^\d{20}-(\d+)$/.exec(pageKey) ?? [];
    if (pageKey !== '' && at === '')
      return { status: 400, body: { status: 400, error: 'Invalid page_key.' } };
    const sold = [...this.sold.values()].map((license, index) => ({ license, index })).toReversed();
    const left = sold.filter(
      ({ license, index }) =>
        (productId === '' || license.product.productId === productId) && (at === '' || index < Number(at)),
    );
    const shown = left.slice(0, salesOfPage);
    const next = `20260105193856000000-${shown.at(-1)?.index ?? 0}`;
    const more = { next_page_key: next, next_page_url: `/v2/sales?page_key=${next}` };
    const sales = shown.map(({ license: { purchase, isDisabled, uses } }) => ({
      ...purchase,
      license_disabled: isDisabled,
      license_uses: uses,
    }));
    return { status: 200, body: { success: true, sales, ...(left.length > salesOfPage && more) } };
  }

  #change(call: Call, license: License): StandInAnswer {
    const count = (by: number): void => {
      license.uses += by;
      call.counted = by;
    };
    switch (call.name) {
      case 'verify':
        if (license.isDisabled) return refused('This license key has been disabled.');
        if (!['false', false].includes(call.parameters['increment_uses_count'] as string)) count(1);
        break;
      case 'decrement_uses_count':
        if (license.uses > 0) count(-1);
        break;
      case 'enable':
      case 'disable':
        license.isDisabled = call.name === 'disable';
        break;
      case 'rotate':
        this.#rotate(license);
        break;
      case 'sales':
        return unknown;
      default:
        return call.name satisfies never;
    }
    return { status: 200, body: { success: true, uses: license.uses, purchase: license.purchase } };
  }

  #rotate(license: License): void {
    this.sold.delete(this.fold(license.licenseKey));
    this.#rotated += 1;
    const group = String(this.#rotated).padStart(8, '0');
    license.licenseKey = [group, group, group, group].join('-');
    license.purchase['license_key'] = license.licenseKey;
    this.sold.set(this.fold(license.licenseKey), license);
  }

  #find({ licenseKey, parameters }: Call): License | 'product_id' | null {
    const license = this.find(licenseKey);
    if (license === null) return null;
    const { product } = license;
    if (isPresent(parameters['product_id']))
      return parameters['product_id'] === product.productId ? license : null;
    if (product.needsProductId) return 'product_id';
    const permalink = [parameters['id'], parameters['link_id'], parameters['product_permalink']].find(
      isPresent,
    );
    return textOf(permalink).toLowerCase() === product.permalink.toLowerCase() ? license : null;
  }
}

const methods: ReadonlyMap<string, string> = new Map([
  ['verify', 'POST'],
  ...['enable', 'disable', 'decrement_uses_count', 'rotate'].map((name) => [name, 'PUT'] as const),
]);

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null && (typeof value !== 'string' || value.trim() !== '');
}

function needsProductId(productId: string): StandInAnswer {
  const text = `The 'product_id' parameter is required to verify the license for this product. Please set 'product_id' to '${productId}' in the request.`;
  return refused(text, 500);
}

/** The members of a purchase, as Gumroad’s own tests list them. */
function purchaseOf(
  licenseKey: string,
  { productId, permalink }: Required<GumroadProduct>,
  members: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return {
    seller_id: 'kL0psVL2admJSYRNs-OCMg==',
    product_id: productId,
    product_name: 'Sample product',
    permalink,
    product_permalink: `https://seller.gumroad.com/l/${permalink}`,
    short_product_id: permalink,
    price: 1_000,
    gumroad_fee: 150,
    currency: 'usd',
    quantity: 1,
    discover_fee_charged: false,
    can_contact: true,
    referrer: 'direct',
    card: { visual: null, type: null, bin: null, expiry_month: null, expiry_year: null },
    order_number: 524459935,
    sale_id: 'FO8TXN-dbxYaBdahG97Y-Q==',
    sale_timestamp: '2026-01-05T19:38:56Z',
    license_key: licenseKey,
    is_gift_receiver_purchase: false,
    refunded: false,
    disputed: false,
    dispute_won: false,
    id: 'FO8TXN-dbxYaBdahG97Y-Q==',
    created_at: '2026-01-05T19:38:56Z',
    variants: '',
    custom_fields: [],
    chargebacked: false,
    ...members,
  };
}
