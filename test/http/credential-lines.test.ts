import { expect, test } from 'vitest';
import { dialects } from '../../src/http/dialects.ts';
import { apiKey, openApp, serverOf } from '../support/app/http-app.ts';

test.each([
  [200, { 'service-api-key': apiKey, 'payhip-api-key': apiKey }],
  [200, { 'service-api-key': apiKey, 'x-api-key': [apiKey, apiKey] }],
  [400, { 'service-api-key': apiKey, 'payhip-api-key': `${apiKey}x` }],
  [400, { 'service-api-key': apiKey, authorization: `Bearer ${apiKey}` }],
])('an API key under two names is answered %i: %j', async (status, headers) => {
  await using opened = await openApp({ dialect: dialects.payhip });
  const server = serverOf(opened.app, { headerAliases: { apiKey: ['x-api-key'], productSecret: [] } });
  expect((await server.inject({ url: '/api/v2/coupons', headers })).statusCode).toBe(status);
});
