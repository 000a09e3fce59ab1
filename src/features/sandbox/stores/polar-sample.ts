import { until } from '../demo-steps.ts';
import type { StoreAgent } from './agent.ts';
import { PolarStore } from './polar.ts';
import { lateKey, lateMs, type StoreSample } from './sample.ts';

const organizationId = 'fda84e25-7b55-4d67-916d-60ead04ff61f';
const key = '1C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA';
const revokedKey = '2C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA';
const expiredKey = '3C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA';
const late = '9C285B2D-6CE6-4BC7-B8BE-ADB6A7E304DA';
const base = '/v1/customer-portal/license-keys';
const json = { 'content-type': 'application/json' };

/** A stand-in for Polar that has sold a license key in each state. */
export function openSample(): StoreSample {
  const store = new PolarStore(organizationId);
  store.sell({ licenseKey: key, limitUsage: 100, limitActivations: 2 });
  store.sell({ licenseKey: revokedKey, status: 'revoked' });
  store.sell({ licenseKey: expiredKey, expiresAt: Date.now() - 60_000 });
  store.sell({ licenseKey: late, lateMs });
  return {
    store,
    settings: { upstream: { access_token: store.accessToken }, products: [{ key: organizationId }] },
    facts: [
      { name: 'organization_id', value: organizationId },
      { name: 'license_key', label: 'license key', value: key, note: 'up to 100 uses, 2 activations' },
      { name: 'revoked_key', label: '… revoked', value: revokedKey },
      { name: 'expired_key', label: '… expired', value: expiredKey },
      lateKey(late),
      { name: 'access_token', label: 'access token', value: store.accessToken },
    ],
    curl: (url) =>
      `${url}${base}/validate -H 'content-type: application/json' -d '${JSON.stringify(bodyOf({}))}'`,
    play: (agent, print) => play(store, agent, print),
  };
}

async function play(store: PolarStore, agent: StoreAgent, print: (line: string) => void): Promise<void> {
  // The agent of a demo asks faster than in daily use.
  store.isLimited = false;
  await store.start();
  print(`1. A stand-in for Polar runs on ${store.url} and has sold a license key: ${key}`);
  await agent.start();
  print(`2. An agent runs in front of it on ${agent.url}`);
  const activation = await call(agent, 'activate', { label: 'laptop' });
  const id = activation?.body['id'];
  if (typeof id !== 'string') throw new Error(`expected an activation, got ${JSON.stringify(activation)}`);
  print('3. A program activated the key at the agent as it does at Polar: 1 of 2 activations is taken');
  await expectUsage(agent, id, 5, 5);
  print('4. The program used it 5 times in one request: granted, and Polar counts 5');
  await store.stop();
  print('5. Polar is gone');
  await expectUsage(agent, id, 3, 8);
  await expectUsage(agent, id, 2, 10);
  print('6. The program used it 3 and 2 times more: granted, and 10 uses; two changes wait in the outbox');
  if ((await call(agent, 'validate', { key: 'NEVER-SEEN' })) !== null)
    throw new Error('a key that nothing is known of was answered');
  print('7. Asked for a key that it does not know, the agent closes the connection: it never makes up a no');
  await store.start();
  await until('Polar counts 10', async () => store.license(key).usage === 10);
  print('8. Polar is back, and counts 10');
  let lost = 0;
  store.fault = ({ parameters }) =>
    parameters['increment_usage'] === 4 && (lost += 1) === 1 ? 'lost_answer' : undefined;
  await expectUsage(agent, id, 4, 14);
  await until('nothing waits', () => agent.isSettled());
  if (store.license(key).usage !== 14) throw new Error('uses were counted twice');
  print('9. Polar counted 4 uses, but its answer was lost: the agent read the count, and sent nothing again');
  const beyond = await call(agent, 'validate', { increment_usage: 90 });
  if (beyond?.status !== 400) throw new Error(`expected a refusal, got ${JSON.stringify(beyond)}`);
  print(`10. 90 uses more are refused as at Polar: ${String(beyond.body['detail'])}`);
  store.change(key, { status: 'revoked' });
  await until('the program sees it', async () => (await validate(agent, id))?.status === 404);
  await store.stop();
  if ((await validate(agent, id))?.status !== 404) throw new Error('the end was forgotten');
  print('11. The key was revoked. Polar is gone again, and the program still sees that it is revoked');
}

function bodyOf(more: Record<string, unknown>): object {
  return { key, organization_id: organizationId, ...more };
}

function call(
  agent: StoreAgent,
  name: string,
  more: Record<string, unknown>,
): ReturnType<StoreAgent['post']> {
  return agent.post(`${base}/${name}`, JSON.stringify(bodyOf(more)), json);
}

function validate(agent: StoreAgent, activationId: string): ReturnType<StoreAgent['post']> {
  return call(agent, 'validate', { activation_id: activationId });
}

async function expectUsage(
  agent: StoreAgent,
  activationId: string,
  by: number,
  usage: number,
): Promise<void> {
  const answer = await call(agent, 'validate', { activation_id: activationId, increment_usage: by });
  if (answer?.status !== 200 || answer.body['usage'] !== usage)
    throw new Error(`expected ${usage} uses, got ${JSON.stringify(answer)}`);
}
