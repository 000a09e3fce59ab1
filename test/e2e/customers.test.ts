import { expect, test } from 'vitest';
import { eventually } from '../support/harness/agent-harness.ts';
import { startAuthorityAndAgents } from '../support/harness/authority-and-agents.ts';

test('what a seller does with a license reaches an agent of the authority within seconds', async () => {
  await using fleet = await startAuthorityAndAgents({ licenseKeys: ['LEAKED', 'OTHER'] });
  const { authority, agents } = fleet;
  const [{ agent } = { agent: null }] = agents;
  if (agent === null) throw new Error('there is no agent');
  const license = async (key: string): Promise<Record<string, unknown>> =>
    ((await agent.verify(key)).body as { data?: Record<string, unknown> }).data ?? {};
  await agent.change('usage', 'LEAKED');
  await agent.atRest();
  await authority.send('/admin/v1/licenses/LEAKED/rekey', { license_key: 'FRESH' });
  await eventually(async () => (await license('LEAKED'))['enabled'] === false);
  expect(JSON.stringify(await license('LEAKED'))).not.toContain('FRESH');
  expect(await license('FRESH')).toMatchObject({ enabled: true, uses: 1 });
  await agent.change('enable', 'LEAKED');
  await agent.atRest();
  expect(await agent.operations('conflicted')).toMatchObject([{ kind: 'enable', subject: 'LEAKED' }]);
  expect(await license('LEAKED')).toMatchObject({ enabled: false });
  await authority.send('/admin/v1/licenses/FRESH/transfer', { buyer_email: 'new@example.com' });
  await eventually(async () => (await license('FRESH'))['buyer_email'] === 'new@example.com');
  const { admin: headers, http } = authority;
  await http.put('/admin/v1/licenses/FRESH/uses', { headers, json: { uses: 40 } });
  await eventually(async () => (await license('FRESH'))['uses'] === 40);
  await agent.change('usage', 'FRESH');
  await agent.atRest();
  expect(await authority.usesOf(['FRESH', 'LEAKED'])).toEqual([41, 1]);
  await authority.send('/admin/v1/customers/forget', { buyer_email: 'buyer@example.com' });
  await eventually(async () => (await license('OTHER'))['buyer_email'] === '');
  expect(await license('OTHER')).toMatchObject({ enabled: true, uses: 0 });
});
