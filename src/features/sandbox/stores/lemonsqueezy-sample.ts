import { dayMs } from '../../../domain/time.ts';
import { until } from '../demo-steps.ts';
import type { StoreAgent } from './agent.ts';
import { LemonSqueezyStore } from './lemonsqueezy.ts';
import { lateKey, lateMs, type StoreSample } from './sample.ts';

const storeId = 76833;
const licenseKey = '38b1460a-5104-4067-a91d-77b872934d51';
const disabledKey = '22222222-5104-4067-a91d-77b872934d51';
const expiredKey = '33333333-5104-4067-a91d-77b872934d51';
const late = '99999999-5104-4067-a91d-77b872934d51';

/** A stand-in for Lemon Squeezy that has sold a license key in each state. */
export function openSample(): StoreSample {
  const store = new LemonSqueezyStore([storeId]);
  store.sell({ licenseKey });
  store.sell({ licenseKey: disabledKey, isDisabled: true });
  store.sell({ licenseKey: expiredKey, expiresAt: Date.now() - dayMs });
  store.sell({ licenseKey: late, lateMs });
  return {
    store,
    settings: { upstream: { access_token: store.apiKey }, products: [{ key: String(storeId) }] },
    facts: [
      { name: 'store_id', value: String(storeId) },
      { name: 'license_key', label: 'license key', value: licenseKey },
      { name: 'disabled_key', label: '… disabled', value: disabledKey },
      { name: 'expired_key', label: '… expired', value: expiredKey },
      lateKey(late),
      { name: 'access_token', label: 'API key', value: store.apiKey },
    ],
    curl: (url) => `${url}/v1/licenses/activate -d license_key=${licenseKey} -d instance_name=laptop`,
    play: (agent, print) => play(store, agent, print),
  };
}

async function play(
  store: LemonSqueezyStore,
  agent: StoreAgent,
  print: (line: string) => void,
): Promise<void> {
  const seats = (): number => store.license(licenseKey).instances.length;
  await store.start();
  print(`1. A stand-in for Lemon Squeezy runs on ${store.url} and has sold a license key: ${licenseKey}`);
  await agent.start();
  print(`2. An agent runs in front of it on ${agent.url}`);
  const laptop = await activate(agent, 'laptop');
  if (laptop === null || seats() !== 1) throw new Error('the key was not activated');
  print('3. A program activated the key at the agent as it does at Lemon Squeezy: 1 of 5 seats is taken');
  await store.stop();
  print('4. Lemon Squeezy is gone');
  await expectValid(agent, laptop, true);
  print('5. The program validated its instance: valid');
  if ((await call(agent, 'validate', { license_key: 'NEVER-SEEN' })) !== null)
    throw new Error('a key that nothing is known of was answered');
  if ((await activate(agent, 'phone')) !== null) throw new Error('a key was activated without the store');
  print(
    '6. For a key that it does not know, and to activate, the agent closes the connection: it makes up no no',
  );
  await store.start();
  store.fault = ({ name }) => (name === 'activate' ? 'lost_answer' : undefined);
  await until('the activation reaches Lemon Squeezy', async () => {
    await activate(agent, 'phone');
    return seats() === 2;
  });
  print('7. Lemon Squeezy is back. It gave a phone the second seat, but its answer was lost');
  store.fault = () => undefined;
  let phone: string | null = null;
  await until('the phone has its instance', async () => (phone = await activate(agent, 'phone')) !== null);
  if (seats() !== 2) throw new Error('a seat was taken twice');
  print('8. The phone tried again: the agent found its instance, and took no third seat');
  await store.stop();
  const gone = await call(agent, 'deactivate', { license_key: licenseKey, instance_id: laptop });
  if (gone?.body['deactivated'] !== true) throw new Error('the instance was not deactivated');
  await expectValid(agent, laptop, false);
  print('9. Lemon Squeezy is gone again. The laptop gave its seat back, which holds here at once');
  await store.start();
  await until('Lemon Squeezy has the seat', async () => seats() === 1);
  print('10. Lemon Squeezy is back, and has the seat');
  store.change(licenseKey, { isDisabled: true });
  await until('the phone sees it', async () => (await isValid(agent, phone)) === false);
  await store.stop();
  await expectValid(agent, phone, false);
  print('11. The key was disabled. Lemon Squeezy is gone, and the phone still sees that');
}

function call(agent: StoreAgent, name: string, form: Record<string, string>): ReturnType<StoreAgent['post']> {
  return agent.post(`/v1/licenses/${name}`, new URLSearchParams(form));
}

/** The id of the instance; null: no answer. */
async function activate(agent: StoreAgent, name: string): Promise<string | null> {
  const answer = await call(agent, 'activate', { license_key: licenseKey, instance_name: name });
  return (answer?.body['instance'] as { id: string } | undefined)?.id ?? null;
}

async function isValid(agent: StoreAgent, instanceId: string | null): Promise<boolean | null> {
  const answer = await call(agent, 'validate', { license_key: licenseKey, instance_id: instanceId ?? '' });
  return answer && answer.body['valid'] === true;
}

async function expectValid(agent: StoreAgent, instanceId: string | null, expected: boolean): Promise<void> {
  if ((await isValid(agent, instanceId)) !== expected)
    throw new Error(`an instance should be ${expected ? 'valid' : 'invalid'}`);
}
