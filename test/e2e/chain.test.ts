import { expect, test } from 'vitest';
import { dataOf, eventually, setStageWithAgent } from '../support/stage/agent-stage.ts';

/** Both agents wait as long for an answer, as they do by default. */
const upstream = { timeout: '8s' };

test.concurrent(
  'an enable that an agent above cannot deliver, since the store hangs, has arrived there: nobody is asked to decide',
  async () => {
    const licenses = [{ licenseKey: 'KEY', enabled: false }];
    await using stage = await setStageWithAgent({ licenses, configuration: { upstream } });
    const { agent: above, proxy } = stage;
    const base_url = above.process.tcp;
    await using lower = await setStageWithAgent({ configuration: { upstream: { ...upstream, base_url } } });
    const { agent: below } = lower;
    await below.learn(['KEY']);
    await proxy.become({ kind: 'half_open' });
    expect(dataOf(await below.change('enable', 'KEY'))).toMatchObject({ enabled: false });
    await below.atRest();
    expect(await below.operations('delivered')).toMatchObject([{ kind: 'enable', attempts: 1 }]);
    expect(await below.operations()).toEqual([]);
    await proxy.become({ kind: 'pass' });
    await above.atRest();
    expect(stage.upstream.license('KEY').enabled).toBe(true);
    await eventually(async () => dataOf(await below.verify('KEY'))['enabled'] === true);
  },
);
