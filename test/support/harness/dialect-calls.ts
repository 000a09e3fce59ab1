import type { Call, Credentials } from './dialect-harness.ts';

/** A request and the name under which its response is stored. */
export type NamedCall = Call & { readonly what: string };

const formType = { 'content-type': 'application/x-www-form-urlencoded' };
const jsonType = { 'content-type': 'application/json' };

const verifyPath = '/api/v2/license/verify';
const changes = ['usage', 'decrease', 'disable', 'enable'] as const;

/** Requests of the store's API, successful and refused, in this order. */
export function storeCalls(credentials: Credentials): readonly NamedCall[] {
  return [
    ...licenseCalls(credentials),
    ...firstVersionCalls(credentials),
    ...couponCalls(credentials),
    ...idempotencyCalls(credentials),
    ...gateCalls(credentials),
  ];
}

/** Requests to an agent while its upstream is down. */
export function offlineCalls({ secret, apiKey }: Credentials): readonly NamedCall[] {
  const headers = { 'product-secret-key': secret };
  return [
    { what: 'offline: verify a known key', method: 'GET', path: `${verifyPath}?license_key=KEY-1`, headers },
    {
      what: 'offline: verify an unseen key',
      method: 'GET',
      path: `${verifyPath}?license_key=UNSEEN`,
      headers,
    },
    { ...change('usage', headers, 'UNSEEN'), what: 'offline: use an unseen key' },
    {
      what: 'offline: read an unseen coupon',
      method: 'GET',
      path: '/api/v2/coupons/99',
      headers: { 'service-api-key': apiKey },
    },
  ];
}

export function change(kind: string, headers: Call['headers'], key: string): NamedCall {
  return {
    what: `${kind} ${key}`,
    method: 'PUT',
    path: `/api/v2/license/${kind}`,
    headers: { ...headers, ...formType },
    body: `license_key=${key}`,
  };
}

function licenseCalls({ secret, apiKey, token, verifyToken }: Credentials): readonly NamedCall[] {
  const headers = { 'product-secret-key': secret };
  const verify = (what: string, query: string, more: Call['headers'] = headers): NamedCall => ({
    what,
    method: 'GET',
    path: `${verifyPath}${query}`,
    headers: more,
  });
  const usage = change('usage', headers, 'KEY-1');
  return [
    verify('verify', '?license_key=KEY-1'),
    { ...verify('verify by HEAD', '?license_key=KEY-1'), method: 'HEAD' },
    verify('verify a disabled key', '?license_key=DISABLED'),
    verify('verify an unknown key', '?license_key=NONE'),
    verify('verify a key of another product', '?license_key=OF-PLAYER'),
    verify('verify what no key can look like', `?license_key=${'x'.repeat(101)}`),
    verify('verify nothing', ''),
    verify('verify an empty key', '?license_key='),
    verify('verify two keys', '?license_key=KEY-1&license_key=KEY-2'),
    verify('verify by broken encoding', '?license_key=%zz'),
    verify('verify without a credential', '?license_key=KEY-1', {}),
    verify('verify with a wrong secret', '?license_key=KEY-1', { 'product-secret-key': 'wrong' }),
    verify('verify with an API key alone', '?license_key=KEY-1', { 'service-api-key': apiKey }),
    verify('verify with both credentials', '?license_key=KEY-1', { ...headers, 'service-api-key': apiKey }),
    verify('verify with a token', '?license_key=KEY-1', { authorization: `Bearer ${verifyToken}` }),
    verify('verify with a token beside a secret', '?license_key=KEY-1', {
      ...headers,
      authorization: `Bearer ${token}`,
    }),
    ...changes.map((kind) => change(kind, headers, 'KEY-1')),
    ...changes.map((kind) => change(kind, headers, 'NONE')),
    ...changes.map((kind) => change(kind, headers, 'OF-PLAYER')),
    ...changes.map((kind) => ({ ...change(kind, headers, 'x'), what: `${kind} nothing`, body: '' })),
    { ...usage, what: 'use by JSON', headers: { ...headers, ...jsonType }, body: '{"license_key":"KEY-1"}' },
    { ...usage, what: 'use by broken JSON', headers: { ...headers, ...jsonType }, body: '{"license_key"' },
    { ...usage, what: 'use by XML', headers: { ...headers, 'content-type': 'text/xml' }, body: '<k/>' },
    { ...usage, what: 'use, compressed', headers: { ...usage.headers, 'content-encoding': 'gzip' } },
    { ...usage, what: 'use by too much', body: `license_key=${'x'.repeat(20_000)}` },
    {
      ...usage,
      what: 'use with a token that may not',
      headers: { ...formType, authorization: `Bearer ${verifyToken}` },
    },
    { ...usage, what: 'use and wait', headers: { ...usage.headers, prefer: 'wait=5' } },
    { what: 'use by the query', method: 'PUT', path: `${usage.path}?license_key=KEY-1`, headers },
    { ...usage, what: 'use by the query and another form', path: `${usage.path}?license_key=KEY-2` },
  ];
}

function firstVersionCalls({ secret, apiKey, verifyToken }: Credentials): readonly NamedCall[] {
  const headers = { 'payhip-api-key': apiKey };
  const path = '/api/v1/license';
  const verify = (what: string, query: string, more: Call['headers'] = headers): NamedCall => ({
    what: `v1: ${what}`,
    method: 'GET',
    path: `${path}/verify?${query}`,
    headers: more,
  });
  const put = (what: string, kind: string, { query = '', body = '' }): NamedCall => ({
    what: `v1: ${what}`,
    method: 'PUT',
    path: `${path}/${kind}${query === '' ? '' : `?${query}`}`,
    headers: { ...headers, ...(body !== '' && formType) },
    ...(body !== '' && { body }),
  });
  const known = 'product_link=EDITOR&license_key=KEY-1';
  return [
    verify('verify', known),
    verify('verify by the header of the second version', known, { 'service-api-key': apiKey }),
    verify('verify by a header in capitals', known, { 'PAYHIP-API-KEY': apiKey }),
    verify(
      'verify by a link',
      'product_link=https%3A%2F%2Fstore.example%2Fb%2FEDITOR%2F%3Fx%3D1&license_key=KEY-1',
    ),
    verify('verify a key of another product', 'product_link=PLAYER&license_key=KEY-1'),
    verify('verify the other product', 'product_link=PLAYER&license_key=OF-PLAYER'),
    verify('verify an unknown key', 'product_link=EDITOR&license_key=NONE'),
    verify('verify of an unknown product', 'product_link=NONE&license_key=KEY-1'),
    verify('verify of no product', 'license_key=KEY-1'),
    verify('verify of a link to nothing', 'product_link=%2F%2F&license_key=KEY-1'),
    verify('verify nothing', ''),
    verify('verify without a credential', known, {}),
    verify('verify with a secret alone', known, { 'product-secret-key': secret }),
    verify('verify with a token', known, { authorization: `Bearer ${verifyToken}` }),
    ...changes.map((kind) => put(`${kind} by form`, kind, { body: known })),
    ...changes.map((kind) => put(`${kind} by query`, kind, { query: known })),
    put('use an unknown key', 'usage', { body: 'product_link=EDITOR&license_key=NONE' }),
    put('use of an unknown product', 'usage', { body: 'product_link=NONE&license_key=KEY-1' }),
    put('use by form and query alike', 'usage', { query: 'product_link=EDITOR', body: known }),
    put('use by form and query that differ', 'usage', { query: 'product_link=PLAYER', body: known }),
    put('use nothing', 'usage', {}),
    { ...verify('second version with the other name', ''), path: '/api/v2/coupons' },
    {
      ...verify('second version ignores the API key', ''),
      path: `${verifyPath}?license_key=KEY-1`,
      headers: { ...headers, 'product-secret-key': secret },
    },
    {
      ...verify('second version ignores the API key under both names', ''),
      path: `${verifyPath}?license_key=KEY-1`,
      headers: { ...headers, 'service-api-key': 'another', 'product-secret-key': secret },
    },
    verify('verify with an API key under each name', known, { ...headers, 'service-api-key': 'another' }),
  ];
}

function couponCalls({ secret, apiKey, verifyToken }: Credentials): readonly NamedCall[] {
  const path = '/api/v2/coupons';
  const headers = { 'service-api-key': apiKey };
  const create = (what: string, body: string): NamedCall => ({
    what,
    method: 'POST',
    path,
    headers: { ...headers, ...formType },
    body,
  });
  const verifyCode = (what: string, query: string, more: Call['headers'] = headers): NamedCall => ({
    what: `v1: ${what}`,
    method: 'GET',
    path: `/api/v1/coupons/verify?${query}`,
    headers: more,
  });
  const redeem = (code: string): NamedCall => ({
    what: `redeem ${code}`,
    method: 'POST',
    path: '/agent/v1/redemptions',
    headers: { ...headers, ...jsonType },
    body: JSON.stringify({ code, order: 'A1', items: [{ product_key: 'EDITOR', amount: 1000 }] }),
  });
  const read = (what: string, rest: string, more: Call['headers'] = headers): NamedCall => ({
    what,
    method: 'GET',
    path: `${path}${rest}`,
    headers: more,
  });
  return [
    create('create a coupon', 'coupon_type=multi&percent_off=20&code=TAKE20&notes=Thanks'),
    create('create a coupon for a product', 'coupon_type=single&product_key=EDITOR&amount_off=500&code=OFF5'),
    create('create a coupon again', 'coupon_type=multi&percent_off=20&code=take20'),
    verifyCode('verify a code', 'code=take20'),
    verifyCode('verify a code with white space around it', 'code=%20take20%09'),
    verifyCode('verify an unknown code', 'code=NONE'),
    verifyCode('verify no code', ''),
    verifyCode('verify a code with a token that may not', 'code=TAKE20', {
      authorization: `Bearer ${verifyToken}`,
    }),
    create(
      'create a coupon that has ended',
      'coupon_type=multi&percent_off=20&code=ENDED&end_date=2024-01-01T00:00:00Z',
    ),
    verifyCode('verify a code that has ended', 'code=ENDED'),
    create(
      'create a coupon that has not started',
      'coupon_type=multi&percent_off=20&code=LATER&start_date=2124-01-01T00:00:00Z',
    ),
    verifyCode('verify a code that has not started', 'code=LATER'),
    create(
      'create a coupon for one use',
      'coupon_type=single&product_key=EDITOR&amount_off=5&code=ONCE&usage_limit=1&minimum_purchase_amount=100',
    ),
    verifyCode('verify a code for one use', 'code=ONCE'),
    redeem('ONCE'),
    verifyCode('verify a code that is used up', 'code=ONCE'),
    create('create a coupon of nothing', ''),
    create('create a coupon with many faults', 'coupon_type=all&percent_off=200&usage_limit=0&cod=X'),
    create('create a coupon for no product', 'coupon_type=single&product_key=NONE&amount_off=5&code=NO'),
    create(
      'create a coupon for a subscription',
      'coupon_type=single&product_key=MONTHLY&amount_off=5&code=NO',
    ),
    { ...create('create a coupon without a credential', 'code=NO'), headers: formType },
    read('list coupons', ''),
    read('list coupons by pages', '?limit=1&offset=0'),
    read('list coupons by a wrong page', '?limit=0'),
    read('list coupons without a credential', '', {}),
    read('list coupons with a secret alone', '', { 'product-secret-key': secret }),
    read('list coupons with a token that may not', '', { authorization: `Bearer ${verifyToken}` }),
    read('read a coupon', '/1'),
    read('read an unknown coupon', '/99'),
    read('read a coupon without a number', '/abc'),
  ];
}

function idempotencyCalls({ secret }: Credentials): readonly NamedCall[] {
  const under = (what: string, key: string, license: string): NamedCall => {
    const call = change('usage', { 'product-secret-key': secret, 'idempotency-key': key }, license);
    return { ...call, what };
  };
  return [
    under('use under a key', 'once', 'KEY-2'),
    under('use under the same key', '"once"', 'KEY-2'),
    under('use another under the same key', 'once', 'KEY-1'),
    under('use under a malformed key', '"', 'KEY-1'),
  ];
}

function gateCalls({ secret }: Credentials): readonly NamedCall[] {
  const headers = { 'product-secret-key': secret };
  const path = `${verifyPath}?license_key=KEY-1`;
  const get = (what: string, more: Partial<NamedCall>): NamedCall => ({
    what,
    method: 'GET',
    path,
    headers,
    ...more,
  });
  return [
    get('a page asks', { headers: { ...headers, origin: 'https://evil.example' } }),
    get('a page without a name asks', { headers: { ...headers, origin: 'null' } }),
    get('a link is followed', { headers: { ...headers, referer: 'https://evil.example/' } }),
    get('a preflight', { method: 'OPTIONS', headers: { origin: 'https://evil.example' } }),
    get('OPTIONS', { method: 'OPTIONS' }),
    get('a page asks for what is not there', {
      path: '/api/v2/none',
      headers: { origin: 'https://evil.example' },
    }),
    get('DELETE coupons', { method: 'DELETE', path: '/api/v2/coupons' }),
    get('POST verify', { method: 'POST' }),
    get('GET usage', { path: '/api/v2/license/usage' }),
    get('no such route', { path: '/api/v2/none' }),
    get('no such version', { path: '/api/v3/license/verify' }),
    get('/api', { path: '/api' }),
    get('/', { path: '/' }),
    get('/apiary', { path: '/apiary' }),
    get('upper case', { path: '/API/v2/coupons' }),
    get('an encoded slash', { path: '/api%2Fv2/license/verify?license_key=KEY-1' }),
    get('an encoded letter', { path: '/%61pi/v2/license/verify?license_key=KEY-1' }),
    get('an undecodable path', { path: '/api/v2/%zz' }),
    get('too many parameters', {
      path: `${path}&${'a,b,c,d,e,f,g,h'
        .repeat(5)
        .split(',')
        .map((name, index) => `${name}${index}=1`)
        .join('&')}`,
    }),
    get('two secrets', { headers: { ...headers, authorization: 'Bearer a' } }),
  ];
}

/** Requests of people and probes, whose routes have no dialect. */
export function localCalls({ token }: Credentials): readonly NamedCall[] {
  const headers = { authorization: `Bearer ${token}` };
  const get = (path: string, more: Call['headers'] = headers): NamedCall => ({
    what: path,
    method: 'GET',
    path,
    headers: more,
  });
  const post = (path: string, body = '{}'): NamedCall => ({
    what: `POST ${path}`,
    method: 'POST',
    path,
    headers: { ...headers, ...jsonType },
    body,
  });
  const admin = '/admin/v1';
  return [
    get('/livez', {}),
    get('/readyz', {}),
    get('/readyz?require=fresh', {}),
    get('/readyz?require=new', {}),
    get('/statusz'),
    { ...get('/statusz', {}), what: '/statusz without a credential' },
    get('/metrics'),
    get('/openapi.json', {}),
    get(`${admin}/accounts`),
    { ...get(`${admin}/accounts`, {}), what: 'accounts without a credential' },
    get(`${admin}/products`),
    get(`${admin}/licenses`),
    get(`${admin}/licenses?enabled=maybe`),
    get(`${admin}/tokens`),
    get(`${admin}/outbox?state=dead`),
    get(`${admin}/outbox/none`),
    get(`${admin}/none`),
    get(`${admin}/backup`),
    post(`${admin}/accounts`, '{"name":"Second"}'),
    post(`${admin}/accounts/none/rotate-key`),
    post(`${admin}/products`, '{"name":"Third","product_key":"THIRD"}'),
    post(`${admin}/products/THIRD/rotate-secret`),
    post(`${admin}/collections`, '{"name":"All","collection_id":"ALL","product_keys":["EDITOR"]}'),
    post(`${admin}/purchases`, '{"product_key":"EDITOR"}'),
    post(`${admin}/purchases/none/refund`),
    post(`${admin}/outbox/none/retry`),
    post(`${admin}/outbox/none/drop`),
    post(`${admin}/outbox/none/confirm`),
    post(`${admin}/sync/pause`),
    post(`${admin}/sync/resume`),
    post(`${admin}/sync/now`),
    post(`${admin}/tokens`, '{"scopes":["ops"]}'),
    { ...get(`${admin}/tokens/none`), what: 'revoke a token', method: 'DELETE' },
    { ...get(`${admin}/tokens`), what: 'PUT tokens', method: 'PUT' },
    {
      ...get(`${admin}/tokens`, { ...headers, origin: 'https://evil.example' }),
      what: 'a page asks for tokens',
    },
  ];
}
