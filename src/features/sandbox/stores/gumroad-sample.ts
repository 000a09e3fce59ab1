import { until } from '../demo-steps.ts';
import type { StoreAgent } from './agent.ts';
import { GumroadStore } from './gumroad.ts';
import { lateKey, lateMs, type StoreSample } from './sample.ts';

const productId = 'SDGgCnivv6gTTHfVRfUBxQ==';
const permalink = 'QMGY';
const licenseKey = '85DB562A-C11D4B06-A2335A6B-8C079166';
const refundedKey = '22222222-BBBBBBBB-22222222-BBBBBBBB';
const disabledKey = '33333333-CCCCCCCC-33333333-CCCCCCCC';
const late = '99999999-ABCDEFAB-99999999-ABCDEFAB';

/** A stand-in for Gumroad that has sold a license key in each state. */
export function openSample(): StoreSample {
  const store = new GumroadStore([{ productId, permalink, needsProductId: false }]);
  store.sell({ licenseKey });
  store.sell({ licenseKey: refundedKey, purchase: { refunded: true } });
  store.sell({ licenseKey: disabledKey, isDisabled: true });
  store.sell({ licenseKey: late, lateMs });
  return {
    store,
    settings: { upstream: { access_token: store.accessToken }, products: [{ key: productId }] },
    facts: [
      { name: 'product_id', value: productId },
      { name: 'product_permalink', value: permalink },
      { name: 'license_key', label: 'license key', value: licenseKey },
      { name: 'refunded_key', label: '… refunded', value: refundedKey },
      { name: 'disabled_key', label: '… disabled', value: disabledKey },
      lateKey(late),
      { name: 'access_token', label: 'access token', value: store.accessToken },
    ],
    curl: (url) => `${url}/v2/licenses/verify -d product_id=${productId} -d license_key=${licenseKey}`,
    play: (agent, print) => play(store, agent, print),
  };
}

async function play(store: GumroadStore, agent: StoreAgent, print: (line: string) => void): Promise<void> {
  await store.start();
  print(`1. A stand-in for Gumroad runs on ${store.url} and has sold a license key: ${licenseKey}`);
  await agent.start();
  print(`2. An agent runs in front of it on ${agent.url}, without a secret`);
  await expectUses(agent, 1);
  print('3. A program verified the key at the agent as it does at Gumroad: valid, 1 use, which Gumroad has');
  await store.stop();
  print('4. Gumroad is gone');
  await expectUses(agent, 2);
  await expectUses(agent, 3);
  print('5. The program started twice more: valid, and 3 uses; two of them wait in the outbox of the agent');
  if ((await verify(agent, 'NEVER-SEEN')) !== null)
    throw new Error('a key that nothing is known of was answered');
  print('6. Asked for a key that it does not know, the agent closes the connection: it never makes up a no');
  await store.start();
  await until('Gumroad counts 3', async () => store.license(licenseKey).uses === 3);
  print('7. Gumroad is back, and counts 3');
  store.fault = () => 'limited_empty';
  await expectUses(agent, 4);
  store.fault = () => undefined;
  await until('Gumroad counts 4', async () => store.license(licenseKey).uses === 4);
  print('8. Gumroad limited the requests for a moment, which the program did not notice');
  let lost = 0;
  store.fault = ({ parameters }) =>
    parameters['increment_uses_count'] === 'true' && (lost += 1) === 1 ? 'lost_answer' : undefined;
  await expectUses(agent, 5);
  await until('nothing waits', () => agent.isSettled());
  if (store.license(licenseKey).uses !== 5) throw new Error('a use was counted twice');
  print(
    '9. Gumroad counted use 5, but its answer was lost: the agent read the count, and did not send it again',
  );
  store.refund(licenseKey);
  await until('the program sees the refund', async () => {
    const answer = await verify(agent, licenseKey, { increment_uses_count: 'false' });
    return (answer?.body['purchase'] as { refunded?: boolean } | undefined)?.refunded === true;
  });
  await store.stop();
  const answer = await verify(agent, licenseKey, { increment_uses_count: 'false' });
  if (answer?.status !== 200) throw new Error('the refund was forgotten');
  print('10. The key was refunded. Gumroad is gone again, and the program still sees the refund');
}

async function expectUses(agent: StoreAgent, uses: number): Promise<void> {
  const answer = await verify(agent, licenseKey);
  if (answer?.status !== 200 || answer.body['uses'] !== uses)
    throw new Error(`expected ${uses} uses, got ${JSON.stringify(answer)}`);
}

function verify(
  agent: StoreAgent,
  key: string,
  more: Record<string, string> = {},
): ReturnType<StoreAgent['post']> {
  const form = new URLSearchParams({ product_id: productId, license_key: key, ...more });
  return agent.post('/v2/licenses/verify', form);
}
