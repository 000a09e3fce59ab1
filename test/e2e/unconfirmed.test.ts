import { expect, test } from 'vitest';
import { eventually, startHarness } from '../support/harness/agent-harness.ts';
import { operate } from '../support/app/people.ts';

test('while the store is down, commands say which changes wait for its confirmation', async () => {
  const licenses = ['KEY', { licenseKey: 'DISABLED', enabled: false }];
  await using harness = await startHarness({ licenses });
  const agent = await harness.startAgent();
  await agent.learn(['KEY', 'DISABLED']);
  const latchkey = async (...argv: string[]): Promise<string> =>
    (await operate(harness.directory, ...argv)).out;
  await agent.createCoupon({ code: 'FIRST' });
  await eventually(async () => (await latchkey('coupon', 'list')).includes('FIRST'));
  await harness.proxy.become({ kind: 'refuse' });
  expect(await latchkey('use', 'KEY')).toContain(
    'Recorded here, not confirmed by the store yet: 1 change of the count.',
  );
  expect(await latchkey('enable', 'DISABLED')).toMatch(
    /^disabled +DISABLED\n[\s\S]*The enable is recorded and waits for the store\. The key does not change here/,
  );
  expect(await latchkey('disable', 'KEY')).toContain('The key is disabled here already');
  const create = ['coupon', 'create', '--code', 'LATER', '--type', 'multi', '--percent-off', '20'];
  expect(await latchkey(...create)).toContain('Provisional: the store has not created it yet.');
  expect(await latchkey('coupon', 'list')).toMatch(/LATER +active, provisional/);
  expect(await latchkey('outbox', 'list', '--key', 'KEY')).toMatch(/usage[\s\S]*disable/);
  expect(await latchkey('outbox', 'list', '--key', 'KEY')).not.toContain('enable  ');
});
