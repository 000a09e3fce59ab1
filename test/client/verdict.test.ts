import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type LatchkeyClient, type Verdict } from '../../src/client/index.ts';
import { startSandbox, type Sandbox } from '../../src/testing.ts';
import { listen } from '../support/network/listener.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const day = 24 * 60 * 60 * 1000;

function summary(said: Verdict): string {
  if (said.verdict === 'valid') return `valid (${said.freshness}, ${said.source})`;
  return `${said.verdict}: ${said.reason}`;
}

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({
    licenses: [
      { licenseKey: 'VALID' },
      { licenseKey: 'DISABLED', enabled: false },
      { licenseKey: 'UNSEEN' },
      { licenseKey: 'ANOTHER', productKey: 'another-product' },
    ],
  });
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
});
const verify = async (licenseKey: string, client = programOf(sandbox)): Promise<string> =>
  summary(await client.verify(licenseKey));

it('the verdict is right in all eight situations', async () => {
  await using directory = temporaryDirectory();
  const remembering = connect({
    url: sandbox.agent.url,
    productSecret: sandbox.productSecret,
    lastKnown: { file: join(directory.path, 'last-known.json') },
  });
  await remembering.verify('VALID');
  const online = {
    valid: await verify('VALID'),
    disabled: await verify('DISABLED'),
    unknown: await verify('NOBODY-HAS-IT'),
    'of another product': await verify('ANOTHER'),
  };
  await sandbox.store.goAway();
  const offline = { 'offline, known': await verify('VALID'), 'offline, unseen': await verify('UNSEEN') };
  await sandbox.agent.stop();
  const down = {
    'agent down': await verify('VALID'),
    'agent down, with a last known verdict': await verify('VALID', remembering),
  };
  await sandbox.agent.start();
  await sandbox.store.comeBack();
  expect({ ...online, ...offline, ...down }).toEqual({
    valid: 'valid (fresh, agent)',
    disabled: 'refused: disabled',
    unknown: 'refused: not_found',
    'of another product': 'refused: not_found',
    'offline, known': 'valid (fresh, agent)',
    'offline, unseen': 'undetermined: unknown',
    'agent down': 'undetermined: agent_unavailable',
    'agent down, with a last known verdict': 'valid (grace, last_known)',
  });
});

it('a key that the store confirmed too long ago is undetermined', async () => {
  await verify('VALID');
  await sandbox.store.goAway();
  sandbox.advance(3 * day);
  expect(await verify('VALID')).toBe('valid (stale, agent)');
  sandbox.advance(12 * day);
  expect(await verify('VALID')).toBe('undetermined: expired');
  await sandbox.store.comeBack();
  expect(await verify('VALID')).toBe('valid (fresh, agent)');
});

it('a refunded key is refused after the agent has read the refund', async () => {
  await sandbox.store.sell([{ licenseKey: 'REFUNDED' }]);
  expect(await verify('REFUNDED')).toBe('valid (fresh, agent)');
  await sandbox.store.refund('REFUNDED');
  sandbox.advance(day);
  await expect.poll(() => verify('REFUNDED')).toBe('refused: disabled');
});

it('the verdicts are the same from an agent in another dialect that resets unknown keys', async () => {
  await using other = await startSandbox({
    dialect: 'payhip',
    configuration: { listen: { unknown: 'reset' } },
    licenses: [{ licenseKey: 'VALID' }, { licenseKey: 'UNSEEN' }],
  });
  const program = programOf(other);
  expect(await verify('VALID', program)).toBe('valid (fresh, agent)');
  expect(await verify('NOBODY-HAS-IT', program)).toBe('refused: not_found');
  await other.store.goAway();
  expect(await verify('UNSEEN', program)).toBe('undetermined: unknown');
});

it.each(['', ' ', '\0', 'x'.repeat(100_000)])('a text that cannot be a key is not found', async (typed) => {
  expect(await verify(typed)).toBe('refused: not_found');
});

it('a server that is not an agent leaves the verdict undetermined', async () => {
  const somebody = await listen(createServer((_, response) => response.writeHead(404).end('Not found')));
  await using _ = somebody;
  expect(await verify('VALID', connect({ url: somebody.url, productSecret: 'secret' }))).toBe(
    'undetermined: agent_unavailable',
  );
});

it('a refused credential is an error, not a verdict', async () => {
  const stranger = connect({ url: sandbox.agent.url, productSecret: 'not-the-secret-of-it' });
  await expect(stranger.verify('VALID')).rejects.toMatchObject({
    code: 'credentials_invalid',
    status: 401,
  });
});

function programOf({ agent, productSecret }: Sandbox): LatchkeyClient {
  return connect({ url: agent.url, productSecret });
}
