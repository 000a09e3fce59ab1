import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.d.ts';

const { ADDRESS = '', SECRET = '' } = process.env;
const client = createClient<paths>({ baseUrl: ADDRESS, headers: { 'product-secret-key': SECRET } });

const verify = (key: string) =>
  client.GET('/api/v2/license/verify', { params: { query: { license_key: key } } });

const known = await verify('KEY-1');
const used = await client.PUT('/api/v2/license/usage', {
  params: { header: { 'Idempotency-Key': 'typescript' } },
  body: { license_key: 'KEY-1' },
});
const unknown = await verify('NONE');
const code: components['schemas']['Problem']['code'] | undefined = unknown.error?.code;
console.log(JSON.stringify([known.data?.data.enabled, used.data?.data.uses, code]));
