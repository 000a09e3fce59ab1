import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Tree } from '../../config/file/tree.ts';
import { credentialHeaders, provenanceHeaderNames } from '../../domain/header-names.ts';
import type { Daemon } from '../daemon.ts';
import { startDaemon } from '../start/start.ts';
import { onEndingSignal } from '../system/ending-signal.ts';
import { embeddedConfiguration } from './embedded-configuration.ts';
import { LocalClient, type LocalAnswer } from './local-client.ts';
import { makeLog } from '../log/log.ts';
import { makeSample, type Sample } from './sample-catalogue.ts';
import { makeTemporaryDirectory } from './temporary-directory.ts';

/** How long a step may take before the demo has failed, in ms. */
const patienceMs = 15_000;

/** Takes each line as it happens. */
type Say = (line: string) => void;

/** Runs the main job end to end, on real servers and real files; 0 only when every step held. */
export async function runDemo(say: Say): Promise<number> {
  using ending = new DisposableStack();
  const { path } = ending.use(makeTemporaryDirectory('latchkey-demo-'));
  ending.defer(onEndingSignal(() => process.exit(1)));
  try {
    await using stage = new Stage(path);
    await play(stage, say);
    say('Every step held.');
    return 0;
  } catch (error) {
    say(`FAILED: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}

async function play(stage: Stage, say: Say): Promise<void> {
  await stage.openStore();
  const sample = await makeSample(stage.admin);
  say(`1. The store's API runs on ${stage.storeUrl} and has sold a license key: ${sample.licenseKey}`);
  await stage.startAgent(sample);
  say(`2. An agent runs in front of it on ${stage.agentUrl}`);
  await verify(stage, sample, { enabled: true, uses: 0 });
  say('3. The agent verified the key: valid, 0 uses');
  await use(stage, sample, 3);
  await settled(stage, sample, 3);
  say('4. 3 uses recorded; both sides count 3');
  await stage.closeStore();
  say("5. The store's API is gone");
  await verify(stage, sample, { enabled: true, uses: 3 });
  await use(stage, sample, 5);
  await verify(stage, sample, { enabled: true, uses: 8 });
  say('6. Offline, the agent verified the key and recorded 5 more uses; they wait in its outbox');
  await stage.openStore();
  await settled(stage, sample, 8);
  say("7. The store's API is back; the outbox has drained, and both sides count 8");
  const refund = await stage.admin.postJson(`/admin/v1/purchases/${sample.purchaseId}/refund`, {});
  expect(refund.status === 200, 'the refund', refund);
  await until('the agent refuses the key', async () => (await license(stage, sample))['enabled'] === false);
  say('8. The purchase was refunded, and the agent refuses the key');
}

/** The store's API and the agent in front of it, as two servers with a directory each. */
class Stage implements AsyncDisposable {
  readonly #directory: string;
  readonly #log = makeLog({ level: 'fatal', format: 'json' });
  #store: Daemon | null = null;
  #agent: Daemon | null = null;
  #storePort = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get storeUrl(): string {
    return this.#store?.addresses.tcp ?? '';
  }

  get agentUrl(): string {
    return this.#agent?.addresses.tcp ?? '';
  }

  get admin(): LocalClient {
    const token = readFileSync(join(this.#directory, 'store', 'admin.token'), 'utf8').trim();
    return new LocalClient(this.storeUrl, { authorization: `Bearer ${token}` });
  }

  /** Opens the store's API, the second time where it was before. */
  async openStore(): Promise<void> {
    this.#store = await this.#start('store', {
      listen: { tcp: `127.0.0.1:${this.#storePort}`, socket: false },
    });
    this.#storePort = Number(new URL(this.storeUrl).port);
  }

  async closeStore(): Promise<void> {
    await this.#store?.stop();
    this.#store = null;
  }

  async startAgent({ productKey, secret }: Sample): Promise<void> {
    this.#agent = await this.#start('agent', {
      listen: { tcp: '127.0.0.1:0', socket: false },
      upstream: { base_url: this.storeUrl, timeout: '2s', probe: '1s' },
      products: [{ key: productKey, secret }],
      // As in daily use, only quicker.
      freshness: { refresh: '500ms' },
      sync: {
        rate: '100',
        reconcile_after: '2s',
        backoff: { first: '100ms', max: '1s' },
        breaker: { open: '500ms' },
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.stop();
    await this.closeStore();
  }

  async #start(name: string, tree: Tree): Promise<Daemon> {
    const configuration = embeddedConfiguration({ state_dir: join(this.#directory, name), ...tree });
    return await startDaemon(configuration, { log: await this.#log });
  }
}

async function verify(
  stage: Stage,
  sample: Sample,
  expected: { enabled: boolean; uses: number },
): Promise<void> {
  const found = await license(stage, sample);
  expect(found['enabled'] === expected.enabled, 'whether the key is valid', found);
  expect(found['uses'] === expected.uses, 'the number of uses', found);
}

async function use(stage: Stage, sample: Sample, times: number): Promise<void> {
  const software = softwareOf(stage.agentUrl, sample);
  for (let count = 0; count < times; count += 1) {
    const answer = await software.putForm('/api/v2/license/usage', { license_key: sample.licenseKey });
    expect(answer.status === 200, 'a use', answer);
  }
}

/** Waits until nothing is pending and both sides count the same. */
async function settled(stage: Stage, sample: Sample, uses: number): Promise<void> {
  await until(`both sides count ${uses}`, async () => {
    const there = await verifyAt(stage.storeUrl, sample);
    const here = await verifyAt(stage.agentUrl, sample);
    return (
      dataOf(there)['uses'] === uses &&
      dataOf(here)['uses'] === uses &&
      here.headers.get(provenanceHeaderNames.pending) === '0'
    );
  });
}

async function license(stage: Stage, sample: Sample): Promise<Record<string, unknown>> {
  const answer = await verifyAt(stage.agentUrl, sample);
  expect(answer.status === 200, 'verifying', answer);
  return dataOf(answer);
}

function verifyAt(url: string, sample: Sample): Promise<LocalAnswer> {
  return softwareOf(url, sample).get(`/api/v2/license/verify?license_key=${sample.licenseKey}`);
}

/** The seller's software, which knows nothing but the specification. */
function softwareOf(url: string, { secret }: Sample): LocalClient {
  return new LocalClient(url, { [credentialHeaders.productSecret]: secret });
}

function dataOf({ body }: LocalAnswer): Record<string, unknown> {
  return (body as { data?: Record<string, unknown> }).data ?? {};
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${patienceMs / 1000} s: ${what}`);
    await sleep(50);
  }
}

function expect(holds: boolean, what: string, seen: unknown): void {
  if (!holds) throw new Error(`${what} is not as it should be: ${JSON.stringify(seen)}`);
}
