import { describe, expect, test } from 'vitest';
import { adminToken } from '../support/app/http-app.ts';
import { serveApp } from '../support/app/http-served.ts';
import { sendRaw } from '../support/network/raw-http.ts';

const asOperator = `Host: localhost\r\nAuthorization: Bearer ${adminToken}\r\n`;
const list = `GET /admin/v1/accounts?limit=100 HTTP/1.1\r\n${asOperator}Connection: close\r\n\r\n`;
const anonymous = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** The complete request that creates an account. */
function add(name: string, headers = ''): string {
  const body = JSON.stringify({ name });
  const head = `POST /admin/v1/accounts HTTP/1.1\r\n${asOperator}${headers}Content-Type: application/json\r\n`;
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}

describe.each(['tcp', 'socket'] as const)('requests that are pipelined over %s', (listener) => {
  test.each([
    ['a public route', 'ready', [add('one'), anonymous, add('lost')], [201, 200]],
    [
      'a request with Expect: 100-continue',
      'ready',
      [add('one'), add('two', 'Expect: 100-continue\r\n'), add('lost')],
      [201, 201],
    ],
    ['any request while the process shuts down', 'leaving', [add('one'), add('lost')], [201]],
  ] as const)(
    'a request pipelined behind %s is not executed, because that response closes the connection',
    async (_, state, sent, answered) => {
      await using served = await serveApp({ readiness: () => ({ state, reasons: [] }) });
      const { raw, ending } = await sendRaw(served.listeners[listener], sent.join(''));
      const statuses = [...raw.matchAll(/HTTP\/1\.1 ([2-5]\d\d)/g)].map(([, status]) => Number(status));
      expect([statuses, ending]).toEqual([answered, 'closed']);
      const { body } = await sendRaw(served.listeners[listener], list);
      expect(body).toContain('"one"');
      expect(body).not.toContain('lost');
    },
  );

  test('a request pipelined behind a first request with Expect: 100-continue is answered', async () => {
    await using served = await serveApp();
    const sent = [add('one', 'Expect: 100-continue\r\n'), add('two'), list].join('');
    const { raw } = await sendRaw(served.listeners[listener], sent);
    const statuses = [...raw.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
    expect(statuses).toEqual([100, 201, 201, 200]);
  });
});
