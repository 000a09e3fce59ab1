import { expect, test } from 'vitest';
import { foreignStores } from '../../../src/config/foreign-stores.ts';
import type { ForeignStoreName } from '../../../src/domain/header-names.ts';
import { standInFaults } from '../../../src/features/sandbox/stores/stand-in.ts';
import { type Configuration, codeOf, eventually } from '../harness/agent-harness.ts';
import type { HttpResponse, RequestOptions } from '../network/raw-http.ts';
import { latchkey } from '../process/command-line.ts';
import { answerOf, type StoreHarness } from './store-harness.ts';

/** A call as a program sends it. Default of `method`: `post`. */
export type StoreCall = RequestOptions & { path: string; method?: 'post' | 'put' };

/** An agent of a store, as the programs of the store call it. */
export type StoreAgent<Harness extends StoreHarness> = {
  store: ForeignStoreName;
  productKey: string;
  accessToken: string;
  keys: Readonly<Record<'good' | 'unseen', string>> & Readonly<Record<string, string>>;
  start: (configuration?: Configuration) => Promise<Harness>;
  /** The calls of the store’s API about a license key. The first one verifies, and counts nothing. */
  calls: (licenseKey: string) => readonly [StoreCall, ...StoreCall[]];
  /** What the store answers to a verify of a key that it does not know. */
  unknown: object;
  /** Does what programs and the seller do. */
  use: (harness: Harness) => Promise<void>;
};

async function send({ agent }: StoreHarness, call: StoreCall): Promise<HttpResponse> {
  const { path, method = 'post', ...options } = call;
  return await agent.client[method](path, options);
}

/** Tests what holds for an agent of each store. */
export function testStoreAgent<Harness extends StoreHarness>(parts: StoreAgent<Harness>): void {
  const { keys, start, calls } = parts;
  const { title } = foreignStores[parts.store];
  const verify = async (it: StoreHarness, licenseKey: string): Promise<HttpResponse> =>
    await send(it, calls(licenseKey)[0]);

  test.concurrent('a late key is unknown at first, and found seconds later', async () => {
    await using it = await start();
    it.store.sell({ licenseKey: 'late', lateMs: 3_600_000 });
    expect(await verify(it, 'late')).toMatchObject({ status: 404, body: parts.unknown });
    it.store.show('late');
    await eventually(async () => (await verify(it, 'late')).status === 200);
  });

  test.concurrent(
    'a caller that understands problems gets the reason instead of a closed connection',
    async () => {
      await using it = await start();
      await it.network.become({ kind: 'refuse' });
      const headers = { accept: 'application/problem+json' };
      for (const call of calls(keys.unseen)) {
        const answer = await send(it, { ...call, headers });
        expect([call.path, answer.status, codeOf(answer)]).toEqual([call.path, 503, 'upstream_unreachable']);
        expect(await answerOf(send(it, call))).toBeNull();
      }
    },
  );

  test.concurrent(`whatever stands in for ${title}, no call gets a no that it has not said`, async () => {
    await using it = await start({ upstream: { timeout: '1s' }, sync: { breaker: { failures: 1_000 } } });
    const { body } = await verify(it, keys.good);
    const expectSilence = async (what: string): Promise<void> => {
      for (const [index, { path }] of calls('').entries()) {
        const licenseKey = `unseen-${what}-${index}`;
        it.store.sell({ licenseKey });
        const call = calls(licenseKey)[index] ?? { path };
        expect([what, path, await answerOf(send(it, call))]).toEqual([what, path, null]);
      }
      expect([what, (await verify(it, keys.good)).body]).toEqual([what, body]);
    };
    for (const fault of standInFaults) {
      it.store.fault = () => fault;
      await expectSilence(fault);
    }
    it.store.fault = () => undefined;
    const text = 'Sign in to this network';
    for (const status of [200, 204, 400, 401, 403, 404, 422, 500]) {
      const page = { success: false, message: text, detail: text };
      it.store.handle = () => ({ status, body: status === 204 ? null : page });
      await expectSilence(String(status));
    }
  });

  test.concurrent(`doctor says whether ${title} answers for each product`, async () => {
    await using it = await start();
    const sound = await latchkey('doctor', '--config', it.file);
    expect(sound.out).toContain(`${parts.store} answers for the product ${parts.productKey}`);
    await it.network.become({ kind: 'refuse' });
    const away = await latchkey('doctor', '--config', it.file);
    const faults = away.out.split('\n').filter((line) => line.startsWith('fail'));
    expect(faults.join('\n')).toContain(`the product ${parts.productKey}`);
  });

  test.concurrent('no line of the log has a license key, an e-mail address or the access token', async () => {
    await using it = await start({ limits: {}, upstream: { timeout: '1s' } });
    for (const key of Object.values(keys)) await answerOf(verify(it, key));
    await parts.use(it);
    await it.network.become({ kind: 'refuse' });
    await parts.use(it);
    const log = JSON.stringify(it.agent.process.lines);
    for (const secret of [...Object.values(keys), parts.accessToken, 'buyer@example.com'])
      expect(log).not.toContain(secret);
  });
}
