import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { App, ProcessControl } from '../../../src/http/app.ts';
import { StorageError } from '../../../src/service/ports.ts';
import { isProofOf } from '../../../src/wire/proof.ts';
import { adminToken, openApp, serverOf } from '../../support/app/http-app.ts';
import { serveApp } from '../../support/app/http-served.ts';
import { CallerConnection } from '../../support/network/caller-connection.ts';

const headers = { authorization: `Bearer ${adminToken}` };
const nonce = 'n0-_'.repeat(8);
const probe = `GET /livez?nonce=${nonce} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
const authorized = `GET /statusz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`;

describe('GET /livez with a nonce', () => {
  test.each(['tcp', 'tls', 'socket'] as const)('keeps its connection (%s) open for a token', async (kind) => {
    await using served = await serveApp();
    const caller = await CallerConnection.open(served.listeners[kind]);
    expect((await caller.ask(probe)).toLowerCase()).toContain('connection: keep-alive');
    expect(await caller.ask(authorized)).toContain(' 200 ');
  });

  test('keeps its connection open during listen.drain_delay', async () => {
    await using served = await serveApp({ readiness: () => ({ state: 'leaving', reasons: ['draining'] }) });
    const caller = await CallerConnection.open(served.listeners.tcp);
    expect((await caller.ask(probe)).toLowerCase()).toContain('connection: keep-alive');
    expect((await caller.ask(authorized)).toLowerCase()).toContain('connection: close');
  });

  test('proves the address of the connection', async () => {
    await using opened = await openApp();
    const server = serverOf(opened.app);
    const clients: unknown[] = [];
    server.server.on('connection', ({ remotePort }: Socket) => clients.push(remotePort));
    const { port } = new URL(await server.listen({ host: '127.0.0.1', port: 0 }));
    const response = await fetch(`http://127.0.0.1:${port}/livez?nonce=${nonce}`);
    const { proof } = (await response.json()) as { proof: { address: string; hmac: string } };
    await server.close();
    expect(proof.address).toBe(`tcp 127.0.0.1:${port} from 127.0.0.1:${String(clients[0])}`);
    const { instance } = opened.app;
    expect(isProofOf(proof.hmac, adminToken, { nonce, instance, address: proof.address })).toBe(true);
  });

  test.each(['n'.repeat(15), 'n'.repeat(65), `${'n'.repeat(20)}.`, `${'n'.repeat(20)}=`])(
    'refuses the nonce %s',
    async (wrong) => {
      await using opened = await openApp();
      const response = await serverOf(opened.app).inject(`/livez?nonce=${wrong}`);
      expect(response.statusCode).toBe(422);
      expect(response.json()).toMatchObject({ errors: [{ parameter: 'nonce', code: 'malformed' }] });
      expect(response.headers.connection).toBe('close');
    },
  );
});

test('GET /livez without a nonce has no proof', async () => {
  await using opened = await openApp();
  const response = await serverOf(opened.app).inject('/livez');
  expect(response.json()).toEqual({ status: 'ok', reasons: [] });
});

describe.each(['stop', 'reload'] as const)('POST /admin/v1/%s', (act) => {
  const ask = async (app: App, more: Record<string, string> = {}) =>
    await serverOf(app).inject({ method: 'POST', url: `/admin/v1/${act}`, headers: { ...headers, ...more } });

  /** Counts what it is asked for. */
  function count(): { calls: string[]; control: ProcessControl } {
    const calls: string[] = [];
    const control: ProcessControl = {
      stop: () => (calls.push('stop'), 15_001),
      reload: async () => (calls.push('reload'), { ok: true, changed: ['log.level'], restart: [] }),
    };
    return { calls, control };
  }

  test('is refused in a program that embeds the daemon', async () => {
    await using opened = await openApp();
    const response = await ask(opened.app);
    expect([response.statusCode, response.json()]).toMatchObject([409, { code: 'embedded' }]);
    expect(await opened.record()).toEqual([]);
  });

  test('is done although its audit entry cannot be stored', async () => {
    await using opened = await openApp();
    const { calls, control } = count();
    const writer: App['writer'] = {
      write: () => Promise.reject(new StorageError('full', new Error('full'))),
    };
    const response = await ask({ ...opened.app, writer, control });
    expect(response.statusCode).toBe(act === 'stop' ? 202 : 200);
    expect(calls).toEqual([act]);
    expect(opened.lines.map(({ message }) => message)).toContain('an audit entry could not be stored');
  });

  test('is done again when it is repeated under an idempotency key', async () => {
    await using opened = await openApp();
    const { calls, control } = count();
    for (const _ of [1, 2]) {
      const response = await ask({ ...opened.app, control }, { 'idempotency-key': 'k' });
      expect(response.json()).toEqual({
        data: act === 'stop' ? { ends_within_s: 16 } : { changed: ['log.level'], restart: [] },
      });
    }
    expect(calls).toEqual([act, act]);
  });
});

test('a reload with an invalid configuration lists its errors, and is no audit entry', async () => {
  await using opened = await openApp();
  const errors = [{ parameter: 'log.level', code: 'invalid', detail: 'log.level: must be a level' }];
  const control: ProcessControl = { stop: () => 0, reload: async () => ({ ok: false, errors }) };
  const app = { ...opened.app, control };
  const response = await serverOf(app).inject({ method: 'POST', url: '/admin/v1/reload', headers });
  expect(response.statusCode).toBe(409);
  expect(response.json()).toMatchObject({ code: 'configuration_invalid', errors });
  expect(await opened.record()).toEqual([]);
});
