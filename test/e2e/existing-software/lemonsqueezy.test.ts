import { afterAll, expect, test } from 'vitest';
import { standInFaults } from '../../../src/features/sandbox/stores/stand-in.ts';
import { eventually } from '../../support/harness/agent-harness.ts';
import { lemonSqueezyPrograms } from '../../support/reference/existing-programs.ts';
import { keys, openLemonSqueezy, startLemonSqueezy, storeId } from '../../support/stores/lemonsqueezy.ts';
import {
  concludeAmidFaults,
  concludeEverywhere,
  install,
  keeps,
  type StorePrograms,
} from '../../support/stores/store-programs.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

/*
 * Programs that were written for Lemon Squeezy, each in its own way. Only their base URL is changed, so that an agent answers
 * them.
 */

const { good, disabled, expired, running, unseen, unknown } = keys;

const lemonSqueezy: StorePrograms = {
  environment: { STORE_ID: String(storeId) },
  keys: { good, disabled, expired, running, unseen, unknown },
  good: ['good', 'running'],
  open: () => openLemonSqueezy(),
  start: (configuration) => startLemonSqueezy(configuration),
};

const build = temporaryDirectory();
afterAll(() => build[Symbol.asyncDispose]());

test.concurrent.for(lemonSqueezyPrograms)(
  '$file concludes at an agent what it concludes at Lemon Squeezy: online, during an outage, and after the grace',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(lemonSqueezy, program, { context, directory: build.path });
    const { found, meant } = await concludeEverywhere(lemonSqueezy, software);
    expect(found).toEqual(meant);
    expect(meant['online']).toMatchObject({
      good: expect.stringMatching(/^VALID/),
      disabled: 'INVALID',
      expired: 'INVALID',
      unknown: 'INVALID',
    });
  },
);

test.concurrent.for(lemonSqueezyPrograms)(
  'whatever stands in for Lemon Squeezy, $file takes no page and no limit for a verdict',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(lemonSqueezy, program, { context, directory: build.path });
    const found = await concludeAmidFaults(lemonSqueezy, software);
    expect(found).toEqual(Object.fromEntries(standInFaults.map((fault) => [fault, keeps])));
  },
);

test.concurrent.for(lemonSqueezyPrograms)(
  '$file activates once, although an answer is lost, and goes on with its instance during an outage',
  { timeout: 300_000 },
  async (program, context) => {
    await using software = await install(lemonSqueezy, program, { context, directory: build.path });
    await using harness = await startLemonSqueezy({ upstream: { timeout: '1s' } });
    const { store, network } = harness;
    const conclude = async (how?: 'count'): Promise<string> =>
      await software.conclude(harness.agent.process.tcp, keys.good, how);
    await harness.call('validate', keys.good);
    store.fault = ({ name }) => (name === 'activate' ? 'lost_answer' : undefined);
    expect(await conclude('count')).toBe('TRY LATER');
    store.fault = () => undefined;
    await eventually(async () => (await conclude('count')) === 'VALID, activated');
    expect(store.license(keys.good).instances).toHaveLength(1);
    await network.become({ kind: 'refuse' });
    await harness.restart();
    expect(await conclude()).toBe('VALID, activated');
    const [instance] = store.license(keys.good).instances;
    await harness.call('deactivate', keys.good, { instance_id: instance?.id ?? '' });
    expect(await conclude()).toBe('INVALID');
  },
);
