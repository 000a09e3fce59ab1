import { describe, expect, it } from 'vitest';
import { agentLicenseService, type AgentLicenseParts } from '../../src/service/agent/license.ts';
import type { Page } from '../../src/domain/page.ts';
import {
  createAgent,
  key,
  minute,
  valueOf,
  type AgentHarness,
  type Harness,
} from '../support/harness/service-harness.ts';

const page: Page = { limit: 100, offset: 0 };

/** The history of a key, with uses and state before and after each change. */
function told(harness: Harness, licenseKey: string = key): string[] {
  const state = ({ uses, enabled }: { uses: number; enabled: boolean }): string =>
    `${uses} ${enabled ? 'valid' : 'disabled'}`;
  return harness.store.history
    .list(licenseKey, page)
    .map(({ change, before, after }) => `${change}: ${state(before)} → ${state(after)}`);
}

describe('the history of a license on an agent', () => {
  it('the history contains the recorded changes as callers saw them before and after, latest first', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.change('usage');
    await agent.change('decrease');
    await agent.change('disable');
    expect(told(agent)).toEqual([
      'disable: 5 valid → 5 disabled',
      'decrease: 6 valid → 5 valid',
      'usage: 5 valid → 6 valid',
    ]);
  });

  it('the history shows that a waiting enable has not enabled the key yet', async () => {
    await using agent = await createAgent({ uses: 5, enabled: false });
    await agent.change('enable');
    expect(told(agent)).toEqual(['enable: 5 disabled → 5 disabled']);
  });

  it('the history shows an enable that undoes this agent’s own disable', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.change('disable');
    await agent.change('enable');
    expect(told(agent)[0]).toBe('enable: 5 disabled → 5 valid');
  });

  it('the history contains no needless or refused change', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.change('enable');
    agent.maxPending = 0;
    await agent.change('usage');
    expect(told(agent)).toEqual([]);
  });

  it('the history contains no changes by responses of the upstream', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.read(agent.says(9, { enabled: false }));
    expect(told(agent)).toEqual([]);
  });

  it('the history is the same under every spelling of the key', async () => {
    await using agent = await createAgent({ uses: 5 });
    await agent.change('usage');
    const own = agent.says(5);
    own.value.licenseKey = 'KEY-ONE';
    await agent.read(own);
    valueOf(await agent.change('usage', { licenseKey: 'KEY-ONE' }));
    const spelled = ['usage: 6 valid → 7 valid', 'usage: 5 valid → 6 valid'];
    expect(told(agent, 'KEY-ONE')).toEqual(spelled);
    for (const asked of [key, 'KEY-ONE']) {
      const { changes, total } = valueOf(await historyOn(agent, asked));
      expect([total, changes.map(({ licenseKey }) => licenseKey)]).toEqual([2, ['KEY-ONE', 'KEY-ONE']]);
    }
  });

  it('the history of an unknown key is refused', async () => {
    await using agent = await createAgent();
    expect(await historyOn(agent, 'NOBODY')).toMatchObject({ problem: { code: 'license_not_found' } });
  });
});

function historyOn(agent: AgentHarness, licenseKey: string) {
  const parts = { reader: agent.store } as unknown as AgentLicenseParts;
  return agentLicenseService(parts).history(null, licenseKey, page);
}

describe('the history of licenses', () => {
  it('the history is empty if it is switched off', async () => {
    await using agent = await createAgent();
    agent.recordsHistory = false;
    await agent.change('usage');
    expect(told(agent)).toEqual([]);
  });

  it('the history contains a repeated request once', async () => {
    await using agent = await createAgent({ uses: 5 });
    const idempotency = { credential: 'c', key: 'k', fingerprint: 'f' };
    await agent.change('usage', { idempotency });
    await agent.change('usage', { idempotency });
    expect(told(agent)).toEqual(['usage: 5 valid → 6 valid']);
  });

  it('the history removes old changes in steps', async () => {
    await using agent = await createAgent({ uses: 0 });
    for (let count = 0; count < 5; count += 1) await agent.change('usage');
    agent.pass(minute);
    const before = agent.now;
    await agent.change('usage');
    const removed = async (): Promise<number> =>
      valueOf(await agent.writer.write('pruneHistory', { before, limit: 3 })).removed;
    expect([await removed(), await removed(), await removed()]).toEqual([3, 2, 0]);
    expect(told(agent)).toEqual(['usage: 5 valid → 6 valid']);
  });
});
