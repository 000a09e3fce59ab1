import { expect, test } from 'vitest';
import { isPlainChosen, protocolOf } from '../../src/service/outbox/protocol.ts';
import { createAgent } from '../support/harness/service-harness.ts';

test('the decision of a person for the plain protocol holds, although /sync/v1 is found meanwhile', async () => {
  await using agent = await createAgent({ uses: 5 });
  await agent.writer.write('chooseProtocol', { protocol: 'plain', reconcileAfterMs: 1_000 });
  await agent.writer.write('startPushing', {});
  expect([protocolOf(agent.store), isPlainChosen(agent.store)]).toEqual(['plain', true]);
  await agent.writer.write('chooseProtocol', { protocol: 'automatic', reconcileAfterMs: 1_000 });
  await agent.writer.write('startPushing', {});
  expect([protocolOf(agent.store), isPlainChosen(agent.store)]).toEqual(['latchkey', false]);
});

test('the decision of a person for the plain protocol ends with another address of the upstream', async () => {
  await using agent = await createAgent({ uses: 5 });
  const products = {
    configured: [{ id: 'press', productKey: 'press', secretDigest: 'digest' }],
    removed: [],
  };
  const bind = (baseUrl: string) => agent.writer.write('bindUpstream', { baseUrl, products });
  await bind('https://plain.example.com');
  await agent.writer.write('chooseProtocol', { protocol: 'plain', reconcileAfterMs: 1_000 });
  await bind('https://plain.example.com');
  expect(isPlainChosen(agent.store)).toBe(true);
  await bind('https://latchkey.example.com');
  await agent.writer.write('startPushing', {});
  expect([protocolOf(agent.store), isPlainChosen(agent.store)]).toEqual(['latchkey', false]);
});
