import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { systemRandom } from '../../../src/daemon/system/machine.ts';
import type { App } from '../../../src/http/app.ts';
import { adminToken, apiKey, openApp, serverOf, type TestApp } from '../app/http-app.ts';
import { VirtualTime, type VirtualClock } from './virtual-clock.ts';

export const pressSecret = 'secret-of-press-1';
export const otherSecret = 'secret-of-other-1';

/** Headers with a credential. */
export const byProduct = { 'product-secret-key': pressSecret };
export const byOther = { 'product-secret-key': otherSecret };
export const byAccount = { 'service-api-key': apiKey };
export const byOperator = { authorization: `Bearer ${adminToken}` };

/** What an agent says about an operation that it delivers. `created`: epoch ms. */
type Keyed = {
  id?: string;
  created?: number;
  epoch?: string;
  repeat?: boolean;
  seen?: number;
  headers?: Headers;
};

/** The answer to a change. `revision`: the header `Latchkey-Revision`. */
export type Changed = { status: number; code: string | null; uses: number | null; revision: string | null };

/** An authority with the products PRESS and OTHER, and the keys KEY-1 to KEY-3, to which agents deliver. */
export interface KeyedAuthority extends AsyncDisposable {
  readonly opened: TestApp;
  readonly server: FastifyInstance;
  readonly time: VirtualTime;
  readonly clock: VirtualClock;
  post(path: string, body: unknown, headers?: Headers): Promise<LightMyRequestResponse>;
  /** Changes a license as an agent that delivers an operation does. */
  change(kind: string, licenseKey: string, keyed?: Keyed): Promise<Changed>;
  uses(licenseKey: string): Promise<number | undefined>;
  /** Sells a license of PRESS. */
  sell(licenseKey: string): Promise<void>;
}

export type Headers = Readonly<Record<string, string>>;

/** A UUIDv7 of now, or of an instant (epoch ms). */
export function newId(at: number = Date.now()): string {
  return systemRandom.uuid(at);
}

/** The headers of an agent that delivers an operation. */
export function keyedHeaders({
  id = newId(),
  created = Date.now(),
  epoch,
  repeat,
  seen,
}: Keyed = {}): Headers {
  const operation = [
    `created=${created}`,
    ...(epoch === undefined ? [] : [`epoch=${epoch}`]),
    ...(repeat === true ? ['repeat'] : []),
    ...(seen === undefined ? [] : [`seen=${seen}`]),
  ];
  return {
    'idempotency-key': id,
    'latchkey-operation': operation.join(', '),
    'latchkey-instance': 'instance-of-the-agent',
  };
}

/** `partOf`: what a feature adds to the app. */
export async function openKeyedAuthority(
  partOf: (app: App, clock: VirtualClock) => Partial<App> = () => ({}),
): Promise<KeyedAuthority> {
  const time = new VirtualTime();
  const clock = time.clock();
  const opened = await openApp();
  const { reader } = opened.app;
  await opened.write(({ settings }) => settings.set('sync_epoch', '0123456789abcdef'.repeat(2)));
  const server = serverOf({ ...opened.app, ...partOf(opened.app, clock) });
  const post: KeyedAuthority['post'] = (path, body, headers = byProduct) =>
    server.inject({ method: 'POST', url: path, headers, payload: body as object });
  for (const [key, secret] of [
    ['PRESS', pressSecret],
    ['OTHER', otherSecret],
  ]) {
    await post('/admin/v1/products', { name: key, product_key: key, secret }, byOperator);
  }
  const sell = async (licenseKey: string): Promise<void> => {
    const sale = { product_key: 'PRESS', buyer_email: 'a@example.com', license_key: licenseKey };
    await post('/admin/v1/purchases', sale, byOperator);
  };
  for (const licenseKey of ['KEY-1', 'KEY-2', 'KEY-3']) await sell(licenseKey);
  return {
    opened,
    server,
    time,
    clock,
    post,
    async change(kind, licenseKey, { headers = byProduct, ...keyed } = {}) {
      const response = await server.inject({
        method: 'PUT',
        url: `/api/v2/license/${kind}`,
        headers: { ...headers, ...keyedHeaders(keyed) },
        payload: { license_key: licenseKey },
      });
      const { data, code = null } = response.json<{ data?: { uses: number }; code?: string }>();
      const revision = response.headers['latchkey-revision'];
      return {
        status: response.statusCode,
        code,
        uses: data?.uses ?? null,
        revision: revision === undefined ? null : String(revision),
      };
    },
    sell,
    uses: async (licenseKey) => (await reader.licenses.get(licenseKey))?.uses,
    async [Symbol.asyncDispose]() {
      await server.close();
      await opened[Symbol.asyncDispose]();
    },
  };
}
