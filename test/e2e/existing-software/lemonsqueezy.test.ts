import { expect, test } from 'vitest';
import { eventually } from '../../support/harness/agent-harness.ts';
import { lemonSqueezyPrograms } from '../../support/reference/existing-programs.ts';
import { keys, openLemonSqueezy, startLemonSqueezy, storeId } from '../../support/stores/lemonsqueezy.ts';
import { testPrograms, timeout } from '../../support/stores/store-programs.ts';

const { full: _, ofAnotherSeller: __, ...asked } = keys;

const install = testPrograms({
  name: 'Lemon Squeezy',
  programs: lemonSqueezyPrograms,
  environment: { STORE_ID: String(storeId) },
  keys: asked,
  good: ['good', 'running'],
  concluded: { good: /: VALID/, disabled: /: INVALID$/, expired: /: INVALID$/, unknown: /: INVALID$/ },
  open: openLemonSqueezy,
  start: startLemonSqueezy,
});

test.concurrent.for(lemonSqueezyPrograms)(
  '$file activates once, although an answer is lost, and goes on with its instance during an outage',
  { timeout },
  async (program, context) => {
    await using software = await install(program, context);
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
