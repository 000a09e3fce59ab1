import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import { makeLog } from '../../../daemon/log.ts';
import { AdvancingTime, maxTimerMs } from '../../../daemon/system/clock.ts';
import { onEndingSignal, skippedSignals } from '../../../daemon/system/process.ts';
import { temporaryFolder } from '../files.ts';
import { GumroadAgent, gumroadSample } from './gumroad-agent.ts';
import { GumroadStore, type GumroadFault } from './gumroad.ts';

type GumroadCommand = {
  port: number;
  latencyMs: number;
  errorRate: number;
  lostReplies: number;
  /** Null: the store stays. */
  offlineAfterMs: number | null;
  withAgent: boolean;
  json: boolean;
};

const lateKey = '99999999-ABCDEFAB-99999999-ABCDEFAB';
const refundedKey = '22222222-BBBBBBBB-22222222-BBBBBBBB';
const disabledKey = '33333333-CCCCCCCC-33333333-CCCCCCCC';
const lateMs = 30_000;

/** What stands in for an answer, in turn. */
const errors: readonly GumroadFault[] = ['page', 'limited', 'limited_empty', 'challenge', 'lost_request'];

/** Runs a stand-in for Gumroad until a signal, and prints what it has sold. */
export async function runGumroadSandbox(options: GumroadCommand): Promise<never> {
  const folder = temporaryFolder();
  const store = new GumroadStore([{ ...gumroadSample, needsProductId: false }]);
  store.latencyMs = options.latencyMs;
  store.fault = misbehave(options);
  store.sell({ licenseKey: gumroadSample.licenseKey });
  store.sell({ licenseKey: refundedKey, purchase: { refunded: true } });
  store.sell({ licenseKey: disabledKey, isDisabled: true });
  store.sell({ licenseKey: lateKey, lateMs });
  const log = await makeLog({ level: 'warn', format: 'pretty' });
  const directory = join(folder.path, 'agent');
  const agent = new GumroadAgent({ store, directory, time: new AdvancingTime(), log });
  const end = async (): Promise<void> => {
    await Promise.all([agent.stop(), store.stop()]);
    folder.close();
  };
  const skip = ['beforeExit' as const, ...skippedSignals];
  const ending = closeWithGrace({ delay: 15_000, skip, logger: undefined }, end);
  onEndingSignal(() => ending.close());
  await store.start(options.port);
  if (options.withAgent) await agent.start();
  const facts = {
    address: store.url,
    agent: options.withAgent ? agent.url : null,
    product_id: gumroadSample.productId,
    product_permalink: gumroadSample.permalink,
    license_key: gumroadSample.licenseKey,
    refunded_key: refundedKey,
    disabled_key: disabledKey,
    late_key: lateKey,
    access_token: store.accessToken,
  };
  process.stdout.write(options.json ? `${JSON.stringify(facts)}\n` : describe(facts));
  if (options.offlineAfterMs !== null) {
    await sleep(options.offlineAfterMs);
    await store.stop();
    if (!options.json) process.stdout.write('The sandbox is offline now. Press Ctrl-C to quit.\n');
  }
  // A timer keeps the process alive until a signal.
  for (;;) await sleep(maxTimerMs);
}

function misbehave({ errorRate, lostReplies }: GumroadCommand): GumroadStore['fault'] {
  let refused = 0;
  return () => {
    if (Math.random() < errorRate) return errors[(refused += 1) % errors.length];
    return Math.random() < lostReplies ? 'lost_answer' : undefined;
  };
}

function describe(facts: Readonly<Record<string, string | null>>): string {
  const { address, agent } = facts;
  const advice =
    agent === null
      ? `Put an agent in front of it:
  upstream: { store: gumroad, base_url: '${address}' }
  products: [{ key: '${facts['product_id']}' }]
`
      : `An agent in front of it answers on ${agent}\n`;
  return `A stand-in for Gumroad's license API is running. Ctrl-C ends it and removes its data.

  address            ${address}
  product_id         ${facts['product_id']}
  product_permalink  ${facts['product_permalink']}
  license key        ${facts['license_key']}
  … refunded         ${facts['refunded_key']}
  … disabled         ${facts['disabled_key']}
  … late             ${facts['late_key']} (unknown for the first ${lateMs / 1000} s)
  access token       ${facts['access_token']}

Try it:
  curl ${agent ?? address}/v2/licenses/verify -d product_id=${facts['product_id']} -d license_key=${facts['license_key']}

${advice}`;
}
