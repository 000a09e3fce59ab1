import { expect, test } from 'vitest';
import { dataOf, eventually, startAgentHarness } from '../support/harness/agent-harness.ts';

/** Both agents wait equally long for a response, as they do by default. */
const upstream = { timeout: '8s' };

test.concurrent(
  "an enable that hangs between an agent's upstream agent and the store is not held for a decision",
  async () => {
    const licenses = [{ licenseKey: 'KEY', enabled: false }];
    await using harness = await startAgentHarness({ licenses, configuration: { upstream } });
    const { agent: above, proxy } = harness;
    const base_url = above.process.tcp;
    await using lower = await startAgentHarness({ configuration: { upstream: { ...upstream, base_url } } });
    const { agent: below } = lower;
    await below.learn(['KEY']);
    await proxy.become({ kind: 'half_open' });
    expect(dataOf(await below.change('enable', 'KEY'))).toMatchObject({ enabled: false });
    await below.atRest();
    expect(await below.operations('delivered')).toMatchObject([{ kind: 'enable', attempts: 1 }]);
    expect(await below.operations()).toEqual([]);
    await proxy.become({ kind: 'pass' });
    await above.atRest();
    expect(harness.upstream.license('KEY').enabled).toBe(true);
    await eventually(async () => dataOf(await below.verify('KEY'))['enabled'] === true);
  },
);
