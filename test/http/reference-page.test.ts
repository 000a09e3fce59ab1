import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dialects } from '../support/stores/dialects.ts';
import { viewerFiles, viewerPath } from '../../src/http/viewer-file.ts';
import { openApp, serverOf, type TestApp } from '../support/app/http-app.ts';

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8';

describe.each(Object.values(dialects))('the reference page in the dialect $name', (dialect) => {
  let opened: TestApp;
  let server: FastifyInstance;
  beforeAll(async () => {
    opened = await openApp({ dialect });
    server = serverOf(opened.app);
  });
  afterAll(async () => {
    await server.close();
    await opened[Symbol.asyncDispose]();
  });

  test.each([undefined, '*/*', 'application/json', 'text/plain, */*;q=0.1', 'application/xhtml+xml'])(
    'software that accepts %s gets 404 for /',
    async (accept) => {
      const answer = await server.inject({ url: '/', headers: accept === undefined ? {} : { accept } });
      expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([404, 'route_not_found']);
      expect(answer.headers['content-type']).toBe('application/problem+json');
    },
  );

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'] as const)(
    '%s on the reference page is 404',
    async (method) => {
      for (const url of ['/', '/docs']) {
        const answer = await server.inject({ method, url, headers: { accept: browser } });
        expect([answer.statusCode, answer.json<{ code: string }>().code]).toEqual([404, 'route_not_found']);
      }
    },
  );

  test('a browser gets the same page at / and /docs, with a policy that allows no other content', async () => {
    const { body: page } = await server.inject({ url: '/docs' });
    for (const url of ['/', '/docs', '/docs/']) {
      const { statusCode, headers, body } = await server.inject({ url, headers: { accept: browser } });
      expect([
        url,
        statusCode,
        headers['content-type'],
        headers['connection'],
        headers['referrer-policy'],
      ]).toEqual([url, 200, 'text/html; charset=utf-8', 'close', 'no-referrer']);
      const policy = String(headers['content-security-policy']);
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /);
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(body).toBe(page);
      expect(body).not.toMatch(/https?:|<script>|style=/);
    }
  });

  test('HEAD of the reference page gets the response to GET without its body', async () => {
    const { statusCode, body } = await server.inject({
      method: 'HEAD',
      url: '/',
      headers: { accept: browser },
    });
    expect([statusCode, body]).toEqual([200, '']);
  });

  test('the files of the viewer are the files of its package, byte for byte', async () => {
    for (const name of viewerFiles) {
      const { statusCode, headers, rawPayload } = await server.inject({ url: `/docs/${name}` });
      const file = readFileSync(viewerPath(name));
      expect([statusCode, headers['content-length'], rawPayload.equals(file)]).toEqual([
        200,
        String(file.length),
        true,
      ]);
    }
  });

  test('the reference page refuses other host names and links from other pages', async () => {
    for (const headers of [{ host: 'evil.example' }, { referer: 'https://evil.example/' }]) {
      const answer = await server.inject({ url: '/docs', headers: { ...headers, accept: browser } });
      expect(answer.statusCode).toBe(403);
    }
  });
});
