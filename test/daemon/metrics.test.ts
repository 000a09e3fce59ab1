import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Metrics } from '../../src/daemon/metrics.ts';
import { dialects } from '../support/stores/dialects.ts';
import { listenTcp } from '../../src/http/listen.ts';
import { StorageError } from '../../src/service/ports.ts';
import { adminToken, authoritySnapshot, openApp, serverOf } from '../support/app/http-app.ts';
import { sendRaw } from '../support/network/raw-http.ts';

/** Lets the event loop run for `ms`: its delay is measured every 20 ms. */
async function spin(ms: number): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) await turn();
}

test('The metrics show the delay of the event loop.', async () => {
  using metrics = new Metrics({ role: 'authority', isSecure: false });
  // The first measurement after a scrape is lost: on a busy machine, one attempt is not enough.
  const lagAfterHold = async (): Promise<number> => {
    await spin(60);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    await spin(60);
    const text = await metrics.expose(authoritySnapshot);
    return Number(/^latchkey_event_loop_lag_seconds (\S+)$/m.exec(text)?.[1]);
  };
  await expect.poll(lagAfterHold).toBeGreaterThan(0.15);
});

const body = 'license_key=KEY';
const common = `Host: localhost\r\nAuthorization: Bearer ${adminToken}`;
const verify = `GET /api/v2/license/verify?${body} HTTP/1.1\r\n${common}\r\n\r\n`;
const form = `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const change = (name: string): string => `PUT /api/v2/license/${name} HTTP/1.1\r\n${common}\r\n${form}`;
const routes = ['verify', 'usage', 'decrease', 'enable', 'disable'];

/** An authority with metrics, and the number of license requests with status 499 by route. */
async function countedServer(changes: Parameters<typeof openApp>[0] = {}) {
  const opened = new AsyncDisposableStack();
  const { app } = opened.use(await openApp(changes));
  const metrics = opened.use(new Metrics({ role: 'authority', isSecure: false }));
  const server = opened.adopt(serverOf(app, { unknown: 'reset' }), (each) => each.close());
  metrics.watch(server);
  const unanswered = async (): Promise<string[]> => {
    const series = /^latchkey_requests_total\{route=".*\/(\w+)",status="499"\} (\d+)$/gm;
    const text = await metrics.expose(authoritySnapshot);
    return [...text.matchAll(series)].map(([, name, count]) => `${name} ${count}`);
  };
  const tcp = await listenTcp(server, { host: '127.0.0.1', port: 0 });
  return { app, tcp, unanswered, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test.each(['specification', 'payhip'] as const)(
  'every verify and change that is hung up upon counts under status 499, in the dialect %s',
  async (dialect) => {
    await using served = await countedServer({ dialect: dialects[dialect] });
    const away = () => Promise.reject(new StorageError('unavailable', new Error('away')));
    Object.assign(served.app.licenseService, { verify: away, change: away });
    for (const name of routes) {
      const { raw } = await sendRaw({ tcp: served.tcp }, name === 'verify' ? verify : change(name));
      expect(raw).toBe('');
    }
    await expect.poll(served.unanswered).toEqual(routes.map((name) => `${name} 1`));
  },
);

test('A change whose caller disconnects before the response counts once, with status 499.', async () => {
  await using served = await countedServer();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { licenseService } = served.app;
  const answer = licenseService.change.bind(licenseService);
  let begun = 0;
  Object.assign(licenseService, {
    change: async (...args: Parameters<typeof answer>) => {
      begun += 1;
      await promise;
      return await answer(...args);
    },
  });
  const caller = connect(Number(new URL(served.tcp).port), '127.0.0.1');
  caller.write(change('usage'));
  await expect.poll(() => begun).toBe(1);
  caller.resetAndDestroy();
  await expect.poll(served.unanswered).toEqual(['usage 1']);
  resolve();
  await sendRaw({ tcp: served.tcp }, 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
  expect(await served.unanswered()).toEqual(['usage 1']);
});
