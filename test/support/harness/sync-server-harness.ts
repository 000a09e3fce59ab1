import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { lazySyncServer } from '../../../src/daemon/sync-server.ts';
import { systemRandom } from '../../../src/daemon/system/machine.ts';
import type { ChangesObject, KnownObject, PushReplyObject } from '../../../src/wire/sync.ts';
import { adminToken, apiKey, openApp, serverOf, type TestApp } from '../app/http-app.ts';
import { silent } from '../silent-log.ts';
import { VirtualTime, type VirtualClock } from './virtual-clock.ts';

export const pressSecret = 'secret-of-press-1';
export const otherSecret = 'secret-of-other-1';

export const agentA = 'a'.repeat(32);
export const agentB = 'b'.repeat(32);

/** Headers with a credential. */
export const byProduct = { 'product-secret-key': pressSecret };
export const byOther = { 'product-secret-key': otherSecret };
export const byAccount = { 'service-api-key': apiKey };
export const byOperator = { authorization: `Bearer ${adminToken}` };

type Sent = { id?: string; kind: string; at?: string } & Record<string, unknown>;

/** The agents' side of /sync/v1 against an authority with the products PRESS and OTHER, and the keys KEY-1 to KEY-3. */
export interface SyncedAuthority extends AsyncDisposable {
  readonly opened: TestApp;
  readonly server: FastifyInstance;
  readonly time: VirtualTime;
  readonly clock: VirtualClock;
  readonly counted: string[];
  post(path: string, body: unknown, headers?: Headers): Promise<LightMyRequestResponse>;
  push(seq: number, operations: readonly unknown[], more?: PushOptions): Promise<LightMyRequestResponse>;
  /** A push that is applied. */
  pushed(seq: number, operations: readonly unknown[], more?: PushOptions): Promise<PushReplyObject>;
  changes(body: object, headers?: Headers): Promise<ChangesObject>;
  known(ids: readonly string[], headers?: Headers): Promise<KnownObject['results']>;
  uses(licenseKey: string): Promise<number | undefined>;
  /** Sells a license of PRESS. */
  sell(licenseKey: string): Promise<void>;
}

type Headers = Readonly<Record<string, string>>;

type PushOptions = { agent?: string; headers?: Headers };

/** A UUIDv7 of now, or of an instant (epoch ms). */
export function newId(at: number = Date.now()): string {
  return systemRandom.uuid(at);
}

/** An operation as an agent sends it. */
export function operation({ id = newId(), at = '2026-02-22T11:24:00Z', ...rest }: Sent): object {
  return { id, at, ...rest };
}

export function usage(licenseKey = 'KEY-1', id = newId()): object {
  return operation({ id, kind: 'usage', license_key: licenseKey });
}

export async function openAuthority(): Promise<SyncedAuthority> {
  const time = new VirtualTime();
  const clock = time.clock();
  const counted: string[] = [];
  const opened = await openApp();
  const { reader, writer, changes } = opened.app;
  const syncServer = lazySyncServer({
    reader,
    writer,
    changes,
    clock,
    random: { ...systemRandom, fraction: () => 0 },
    log: silent,
    count: (result, outcomes) => counted.push([result, ...outcomes].join(' ')),
  });
  await opened.write(({ settings }) => settings.set('sync_epoch', '0123456789abcdef'.repeat(2)));
  const server = serverOf({ ...opened.app, syncServer });
  const post: SyncedAuthority['post'] = (path, body, headers = byProduct) =>
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
  const push: SyncedAuthority['push'] = (seq, operations, { agent = agentA, headers = byProduct } = {}) =>
    post('/sync/v1/push', { agent, seq, operations }, headers);
  return {
    opened,
    server,
    time,
    clock,
    counted,
    post,
    push,
    async pushed(...args) {
      return dataOf(await push(...args)) as PushReplyObject;
    },
    async changes(body, headers = byProduct) {
      return dataOf(await post('/sync/v1/changes', { agent: agentA, ...body }, headers)) as ChangesObject;
    },
    async known(ids, headers = byProduct) {
      const known = dataOf(await post('/sync/v1/known', { agent: agentA, ids }, headers));
      return (known as KnownObject).results;
    },
    sell,
    uses: async (licenseKey) => (await reader.licenses.get(licenseKey))?.uses,
    async [Symbol.asyncDispose]() {
      syncServer.stopWaiting();
      await server.close();
      await opened[Symbol.asyncDispose]();
    },
  };
}

export function dataOf(response: LightMyRequestResponse): unknown {
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`);
  return response.json<{ data: unknown }>().data;
}
