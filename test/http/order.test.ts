import { expect, test } from 'vitest';
import type { Readiness } from '../../src/http/app.ts';
import { adminToken, limits, openApp, serverOf, type TestApp } from '../support/app/http-app.ts';
import { serveApp } from '../support/app/http-served.ts';
import { sendRaw } from '../support/network/raw-http.ts';

const lines = (...given: string[]): Buffer =>
  Buffer.from([...given, 'Connection: close', '', ''].join('\r\n'));

test('of several errors of a head, the first in the documented order is reported', async () => {
  await using served = await serveApp({}, { limits });
  const { instance } = served.app;
  const target = 'GET http://evil.example/nowhere?a=1&a=2 HTTP/1.1';
  const path = 'GET /nowhere?a=1&a=2 HTTP/1.1';
  const many = Array.from({ length: 40 }, (_, index) => `X-${index}: 1`);
  const [foreign, ours] = ['Host: evil.example', 'Host: localhost'];
  const [page, twice] = ['Origin: https://evil.example', 'Content-Type: a\r\nContent-Type: b'];
  const itself = `Latchkey-Instance: ${instance}`;
  const rest = [page, twice, itself];
  const told: [status: number | undefined, what: string][] = [];
  for (const head of [
    lines(target, foreign, ...rest, ...many),
    lines(target, foreign, foreign, ...rest),
    lines(target, foreign, ...rest),
    lines(target, ours, ...rest),
    lines(path, ours, ...rest),
    lines(path, ours, twice, itself),
    lines(path, ours, itself),
    lines('GET /nowhere HTTP/1.1', ours, itself),
    lines('GET /nowhere HTTP/1.1', ours),
  ]) {
    const { status, body } = await sendRaw(served.listeners.tcp, head);
    const { code, detail } = JSON.parse(body) as { code: string; detail: string };
    told.push([status, code === 'malformed_request' ? detail : code]);
  }
  expect(told).toEqual([
    [431, 'headers_too_large'],
    [400, 'Exactly one well-formed Host is needed.'],
    [403, 'host_forbidden'],
    [400, 'The target must be a path.'],
    [403, 'origin_forbidden'],
    [400, 'Content-Type is sent twice.'],
    [400, 'duplicate_parameter'],
    [508, 'loop_detected'],
    [404, 'route_not_found'],
  ]);
});

test('after the head, the server checks the route, the readiness, the credential, the role and the body, in this order', async () => {
  const readiness: { now: Readiness['state'] } = { now: 'draining' };
  const state = { readiness: () => ({ state: readiness.now, reasons: [] }) };
  await using agent = await openApp({ role: 'agent', ...state });
  await using authority = await openApp(state);
  const rest = { productKey: null, label: null, createdAt: 0, lastUsedAt: null, expiresAt: null };
  const token = { tokenId: 'seller', scopes: ['admin'], accountId: 'default', ...rest } as const;
  await agent.write(({ tokens }) => tokens.add(token, agent.app.digest('lk_tok_seller')));
  const ask = async ({ app }: TestApp, bearer: string, url = '/admin/v1/accounts'): Promise<string> => {
    const headers = { authorization: `Bearer ${bearer}`, 'content-encoding': 'gzip' };
    const answer = await serverOf(app).inject({ method: 'POST', url, headers, payload: 'x' });
    return answer.json<{ code: string }>().code;
  };
  expect(await ask(agent, 'wrong', '/nowhere')).toBe('route_not_found');
  expect(await ask(agent, 'wrong')).toBe('draining');
  readiness.now = 'ready';
  expect(await ask(agent, 'wrong')).toBe('credentials_invalid');
  expect(await ask(agent, 'lk_tok_seller')).toBe('operator_only');
  expect(await ask(agent, adminToken)).toBe('not_the_authority');
  expect(await ask(authority, adminToken)).toBe('unsupported_media_type');
});
