import { join } from 'node:path';
import { credentialHeaders, provenanceHeaderNames } from '../../domain/header-names.ts';
import { makeLog } from '../../daemon/log.ts';
import { onEndingSignal } from '../../daemon/system/process.ts';
import { makeTemporaryDirectory } from '../../daemon/system/temporary-directory.ts';
import { AdvancingTime } from '../../daemon/system/clock.ts';
import { LocalClient, type LocalResponse } from '../../daemon/local-client.ts';
import { SandboxAgent } from './agent.ts';
import { demoConfiguration, printSteps, until } from './demo-steps.ts';
import { noFaults, sampleLicenseKey, SandboxStore } from './store.ts';

/** Runs the main job end to end, on real servers and files. `print` takes each line as it happens. Returns an exit code. */
export async function runDemo(print: (line: string) => void): Promise<number> {
  using directory = makeTemporaryDirectory('latchkey-demo-');
  await using demo = await openDemo(directory.path);
  // Before the directory is removed: Windows removes no open file.
  const stopListening = onEndingSignal(() => void closeDemo(demo).finally(() => process.exit(1)));
  try {
    return await printSteps(() => play(demo, print), print);
  } finally {
    stopListening();
  }
}

type Demo = AsyncDisposable & { store: SandboxStore; agent: SandboxAgent };

async function openDemo(directory: string): Promise<Demo> {
  const log = await makeLog({ level: 'fatal', format: 'json' });
  const shared = { dialect: 'specification', time: new AdvancingTime(), log } as const;
  // Most stores are no Latchkey: they can leave an agent without the answer to a change.
  const faults = { ...noFaults, isPlain: true };
  const store = new SandboxStore({ ...shared, directory: join(directory, 'store'), faults });
  const agent = new SandboxAgent({
    ...shared,
    directory: join(directory, 'agent'),
    store,
    configuration: demoConfiguration,
  });
  return {
    store,
    agent,
    async [Symbol.asyncDispose]() {
      await closeDemo({ store, agent });
    },
  };
}

async function closeDemo({ store, agent }: Pick<Demo, 'store' | 'agent'>): Promise<void> {
  await agent.stop();
  await store.goAway();
}

async function play(demo: Demo, print: (line: string) => void): Promise<void> {
  const { store, agent } = demo;
  await store.comeBack();
  const licenseKey = await store.sellOne({ licenseKey: sampleLicenseKey });
  print(`1. The store's API runs on ${store.url} and has sold a license key: ${licenseKey}`);
  await agent.start();
  print(`2. An agent runs in front of it on ${agent.url}`);
  await expectLicense(demo, licenseKey, { enabled: true, uses: 0 });
  print('3. The agent verified the key: valid, 0 uses');
  await use(demo, licenseKey, 3);
  await untilBothCount(demo, licenseKey, 3);
  print('4. 3 uses recorded; both sides count 3');
  await store.goAway();
  print("5. The store's API is gone");
  await expectLicense(demo, licenseKey, { enabled: true, uses: 3 });
  await use(demo, licenseKey, 5);
  await expectLicense(demo, licenseKey, { enabled: true, uses: 8 });
  print('6. Offline, the agent verified the key and recorded 5 more uses; they wait in its outbox');
  await store.comeBack();
  await untilBothCount(demo, licenseKey, 8);
  print("7. The store's API is back; the outbox has drained, and both sides count 8");
  await refundAnother(demo);
  print('8. Another key was sold, verified and refunded, and the agent refuses it');
  await loseAnswer(demo, licenseKey, 9);
  print(
    '9. The store counted use 9, but its answer was lost: the agent does not know, and does not send it again',
  );
  await untilBothCount(demo, licenseKey, 9);
  print('10. The agent waited, read the count, and found its use there: both sides count 9');
}

async function refundAnother(demo: Demo): Promise<void> {
  const licenseKey = await demo.store.sellOne();
  await expectLicense(demo, licenseKey, { enabled: true, uses: 0 });
  await demo.store.refund(licenseKey);
  await until('the agent refuses the key', async () => !(await licenseOf(demo, licenseKey))['enabled']);
}

/** Makes the store count a use and leave it unanswered. Returns when the agent has noticed, and the store answers again. */
async function loseAnswer(demo: Demo, licenseKey: string, uses: number): Promise<void> {
  const { store, agent } = demo;
  store.loseResponses(1);
  await use(demo, licenseKey, 1);
  await until('the agent has lost an answer', async () => (await agent.outboxDepth()).uncertain === 1);
  const counted = (await store.license(licenseKey))?.uses;
  if (counted !== uses) throw new Error(`the store counts ${counted} instead of ${uses}`);
  store.loseResponses(0);
}

async function expectLicense(
  demo: Demo,
  licenseKey: string,
  expected: { enabled: boolean; uses: number },
): Promise<void> {
  const { enabled, uses } = await licenseOf(demo, licenseKey);
  const actual = { enabled, uses };
  if (enabled === expected.enabled && uses === expected.uses) return;
  throw new Error(`expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
}

async function use({ store, agent }: Demo, licenseKey: string, times: number): Promise<void> {
  const software = softwareClient(agent.url, store);
  for (let count = 0; count < times; count += 1) {
    const response = await software.putForm('/api/v2/license/usage', { license_key: licenseKey });
    expectOk(response, 'a use');
  }
}

/** Waits until no change is pending and both sides count the same. */
async function untilBothCount({ store, agent }: Demo, licenseKey: string, uses: number): Promise<void> {
  await until(`both sides count ${uses}`, async () => {
    const atStore = await verify(store.url, store, licenseKey);
    const atAgent = await verify(agent.url, store, licenseKey);
    return (
      dataOf(atStore)['uses'] === uses &&
      dataOf(atAgent)['uses'] === uses &&
      atAgent.headers.get(provenanceHeaderNames.pending) === '0'
    );
  });
}

async function licenseOf({ store, agent }: Demo, licenseKey: string): Promise<Record<string, unknown>> {
  const response = await verify(agent.url, store, licenseKey);
  expectOk(response, 'a verify');
  return dataOf(response);
}

function verify(url: string, store: SandboxStore, licenseKey: string): Promise<LocalResponse> {
  return softwareClient(url, store).get(`/api/v2/license/verify?license_key=${licenseKey}`);
}

/** The software of the seller, which knows the specification alone. */
function softwareClient(url: string, { credentials }: SandboxStore): LocalClient {
  return new LocalClient(url, { [credentialHeaders.productSecret]: credentials.productSecret });
}

/** The data of a response; empty if it failed. */
function dataOf({ body }: LocalResponse): Record<string, unknown> {
  return (body as { data?: Record<string, unknown> }).data ?? {};
}

function expectOk({ status, body }: LocalResponse, what: string): void {
  if (status !== 200) throw new Error(`${what} got status ${status}: ${JSON.stringify(body)}`);
}
