import { join } from 'node:path';
import { makeLog } from '../../../daemon/log.ts';
import { AdvancingTime } from '../../../daemon/system/clock.ts';
import { onEndingSignal } from '../../../daemon/system/process.ts';
import { makeTemporaryDirectory } from '../../../daemon/system/temporary-directory.ts';
import { demoConfiguration, printSteps, until } from '../demo-steps.ts';
import { GumroadAgent, gumroadSample, verifyAt } from './gumroad-agent.ts';
import { GumroadStore } from './gumroad.ts';

/** Shows what an agent of Gumroad does, on a stand-in. `print` takes each line as it happens. Returns an exit code. */
export async function runGumroadDemo(print: (line: string) => void): Promise<number> {
  using directory = makeTemporaryDirectory('latchkey-demo-');
  await using store = new GumroadStore([gumroadSample]);
  const log = await makeLog({ level: 'fatal', format: 'json' });
  const parts = { store, directory: join(directory.path, 'agent'), time: new AdvancingTime(), log };
  const agent = new GumroadAgent(parts, demoConfiguration);
  const end = async (): Promise<unknown> => await Promise.all([agent.stop(), store.stop()]);
  // Before the directory is removed: Windows removes no open file.
  const stopListening = onEndingSignal(() => void end().finally(() => process.exit(1)));
  try {
    return await printSteps(() => play(store, agent, print), print);
  } finally {
    stopListening();
    await end();
  }
}

async function play(store: GumroadStore, agent: GumroadAgent, print: (line: string) => void): Promise<void> {
  const { licenseKey } = gumroadSample;
  store.sell({ licenseKey });
  await store.start();
  print(`1. A stand-in for Gumroad runs on ${store.url} and has sold a license key: ${licenseKey}`);
  await agent.start();
  print(`2. An agent runs in front of it on ${agent.url}, without a secret`);
  await expectUses(agent, licenseKey, 1);
  print('3. A program verified the key at the agent as it does at Gumroad: valid, 1 use, which Gumroad has');
  await store.stop();
  print('4. Gumroad is gone');
  await expectUses(agent, licenseKey, 2);
  await expectUses(agent, licenseKey, 3);
  print('5. The program started twice more: valid, and 3 uses; two of them wait in the outbox of the agent');
  if ((await verifyAt(agent.url, { licenseKey: 'NEVER-SEEN' })) !== null)
    throw new Error('a key that nothing is known of was answered');
  print('6. Asked for a key that it does not know, the agent closes the connection: it never makes up a no');
  await store.start();
  await until('Gumroad counts 3', async () => store.license(licenseKey).uses === 3);
  print('7. Gumroad is back, and counts 3');
  store.fault = () => 'limited_empty';
  await expectUses(agent, licenseKey, 4);
  store.fault = () => undefined;
  await until('Gumroad counts 4', async () => store.license(licenseKey).uses === 4);
  print('8. Gumroad limited the requests for a moment, which the program did not notice');
  let lost = 0;
  store.fault = ({ parameters }) =>
    parameters['increment_uses_count'] === 'true' && (lost += 1) === 1 ? 'lost_answer' : undefined;
  await expectUses(agent, licenseKey, 5);
  await until('nothing waits', async () => (await agent.waiting()) === 0);
  if (store.license(licenseKey).uses !== 5) throw new Error('a use was counted twice');
  print(
    '9. Gumroad counted use 5, but its answer was lost: the agent read the count, and did not send it again',
  );
  store.refund(licenseKey);
  await until('the program sees the refund', async () => {
    const answer = await verifyAt(agent.url, { licenseKey, isCounted: false });
    return (answer?.body['purchase'] as { refunded?: boolean } | undefined)?.refunded === true;
  });
  await store.stop();
  const answer = await verifyAt(agent.url, { licenseKey, isCounted: false });
  if (answer?.status !== 200) throw new Error('the refund was forgotten');
  print('10. The key was refunded. Gumroad is gone again, and the program still sees the refund');
}

async function expectUses(agent: GumroadAgent, licenseKey: string, uses: number): Promise<void> {
  const answer = await verifyAt(agent.url, { licenseKey });
  if (answer?.status !== 200 || answer.body['uses'] !== uses)
    throw new Error(`expected ${uses} uses, got ${JSON.stringify(answer)}`);
}
