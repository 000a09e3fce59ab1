import { RunningIssuer } from '../../leases/support/issuer-harness.ts';
import type { HttpResponse, RequestOptions } from '../../../support/network/raw-http.ts';

/** The address of the buyer of every license of the shop. */
export const buyerEmail = 'ada@example.com';

/** The texts of a page as a person reads them, one line for each element. */
export function textOf({ body }: Pick<HttpResponse, 'body'>): string {
  const markup = String(body).replaceAll(/<(style|svg)[\s\S]*?<\/\1>/g, '');
  const text = markup.replaceAll(/<[^>]*>/g, '\n');
  const lines = unescaped(text).split('\n');
  return lines
    .map((line) => line.trim().replaceAll(/\s+/g, ' '))
    .filter((line) => line !== '')
    .join('\n');
}

function unescaped(text: string): string {
  return text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

/** The hidden fields of a form of a page with this action; `index` counts the forms with it. */
export function fieldsOf(
  { body }: Pick<HttpResponse, 'body'>,
  action: string,
  index = 0,
): Record<string, string> {
  const form = String(body).split(`action="${action}"`)[index + 1]?.split('</form>')[0];
  if (form === undefined) throw new Error(`the page has no form ${action}`);
  const inputs = form.matchAll(/<input\s+type="hidden"\s+name="([^"]+)"\s+value="([^"]*)"/g);
  return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, unescaped(value)]));
}

type Opening = { buyers?: object | boolean; terms?: object; isSetUp?: boolean; configuration?: object };

/** A shop whose customers open its page for buyers, each from an address of its own. Seats are free when a lease ends. */
export class BuyersShop extends RunningIssuer {
  #customers = 0;

  constructor() {
    super('authority');
  }

  /** `buyers`: the setting of that name. */
  async open({ buyers = true, terms = {}, isSetUp = true, configuration = {} }: Opening = {}): Promise<this> {
    return await this.start({
      terms: { seats: 2, refresh: 86_400, term: 2_592_000, hold: 0, ...terms },
      listen: { public: { address: '127.0.0.1:0', proxies: ['127.0.0.1'], buyers } },
      isSetUp,
      configuration,
    });
  }

  customer(): Customer {
    this.#customers += 1;
    return new Customer(this, {
      'x-forwarded-for': `198.51.${this.#customers >> 8}.${this.#customers % 256}`,
    });
  }
}

/** A browser that sends forms from one address. */
export class Customer {
  readonly #shop: BuyersShop;
  readonly #headers: Record<string, string>;

  constructor(shop: BuyersShop, headers: Record<string, string>) {
    this.#shop = shop;
    this.#headers = headers;
  }

  async get(path = '/license', headers: Record<string, string> = {}): Promise<HttpResponse> {
    return await this.#shop.devices.get(path, { headers: { ...this.#headers, ...headers } });
  }

  async post(
    path: string,
    fields: NonNullable<RequestOptions['form']>,
    headers: Record<string, string> = {},
  ): Promise<HttpResponse> {
    return await this.#shop.devices.post(path, { form: fields, headers: { ...this.#headers, ...headers } });
  }

  async upload(path: string, fields: Record<string, string | File>): Promise<HttpResponse> {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    const encoded = new Response(form);
    const headers = { ...this.#headers, 'content-type': encoded.headers.get('content-type') ?? '' };
    return await this.#shop.devices.post(path, { headers, body: await encoded.text() });
  }

  async open(licenseKey: string, email = buyerEmail): Promise<HttpResponse> {
    return await this.post('/license', { license_key: licenseKey, email });
  }

  /** Presses the button to free a seat, and the button that confirms it. */
  async freeSeat(page: HttpResponse, index = 0): Promise<HttpResponse> {
    const question = await this.post('/license/seat', fieldsOf(page, '/license/seat', index));
    return await this.post('/license/seat', { ...fieldsOf(question, '/license/seat'), confirmed: 'yes' });
  }
}
