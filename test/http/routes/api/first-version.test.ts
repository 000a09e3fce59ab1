import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dialects } from '../../../support/stores/dialects.ts';
import { adminToken, apiKey } from '../../../support/app/http-app.ts';
import { serveApp, type Served } from '../../../support/app/http-served.ts';
import { httpClient, type HttpResponse, type HttpClient } from '../../../support/network/raw-http.ts';

const operator = { authorization: `Bearer ${adminToken}` };

describe('the first version of the API, which names the product', () => {
  let served: Served;
  let http: HttpClient;
  beforeAll(async () => {
    served = await serveApp({ dialect: dialects.payhip });
    http = httpClient(served.listeners.tcp);
    for (const key of ['EDITOR', 'PLAYER']) {
      await post('products', { name: key, product_key: key });
      await post('purchases', { product_key: key, buyer_email: 'a@example.com', license_key: `OF-${key}` });
    }
  });
  afterAll(async () => {
    await http[Symbol.asyncDispose]();
    await served[Symbol.asyncDispose]();
  });

  async function post(what: string, json: object): Promise<Record<string, string>> {
    const { body } = await http.post(`/admin/v1/${what}`, { headers: operator, json });
    return (body as { data: Record<string, string> }).data;
  }

  const verify = (secret: string, product: string): Promise<HttpResponse> =>
    http.get(`/api/v1/license/verify?product_link=${product}&license_key=OF-${product}`, {
      headers: { 'payhip-api-key': secret },
    });
  const use = (secret: string, product: string): Promise<HttpResponse> =>
    http.put('/api/v1/license/usage', {
      headers: { 'payhip-api-key': secret },
      form: { product_link: product, license_key: `OF-${product}` },
    });

  /** The products whose keys the credential can verify and use. */
  async function reached(secret: string): Promise<string[]> {
    const found: string[] = [];
    for (const product of ['EDITOR', 'PLAYER']) {
      for (const [what, ask] of Object.entries({ verify, use })) {
        if ((await ask(secret, product)).status === 200) found.push(`${what} ${product}`);
      }
    }
    return found;
  }

  test("in the first version of the API, an account's API key can use each product", async () => {
    const all = ['verify EDITOR', 'use EDITOR', 'verify PLAYER', 'use PLAYER'];
    expect(await reached(apiKey)).toEqual(all);
  });

  test('in the first version of the API, a product token can use only its product', async () => {
    const issued = await post('tokens', { scopes: ['verify', 'use'], product_key: 'EDITOR' });
    expect(await reached(String(issued['token']))).toEqual(['verify EDITOR', 'use EDITOR']);
  });

  test("in the first version of the API, another account's API key can use neither product", async () => {
    const account = await post('accounts', { name: 'Other' });
    expect(await reached(String(account['api_key']))).toEqual([]);
  });
});
