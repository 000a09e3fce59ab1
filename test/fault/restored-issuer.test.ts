import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { setUp } from '../../src/features/leases/issuer/signing-files.ts';
import { operate } from '../support/app/people.ts';
import { ownFiles } from '../features/leases/support/lease-builders.ts';
import { eventually, productKey } from '../support/harness/agent-harness.ts';
import {
  agentConfiguration,
  AgentProcess,
  AuthorityProcess,
  untilLatchkeyKnown,
} from '../support/harness/authority-and-agents.ts';
import { freePort } from '../support/network/free-port.ts';
import { startDaemonProcess } from '../support/process/daemon-process.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const key = 'ABCDE-FGHJK-LMNPQ-RSTUV';
const dropUnsent = '--drop-unsent';

/**
 * An authority, an agent in front of it that signs leases, and a device that has a lease. `backsUpFirst`: the issuer is backed
 * up before it knows the device.
 */
async function openShop(stack: AsyncDisposableStack, backsUpFirst = false) {
  const directory = (): string => stack.use(temporaryDirectory()).path;
  const authority = stack.use(new AuthorityProcess(directory(), await freePort(), {}));
  await authority.start();
  await authority.sell([key]);
  const port = await freePort();
  const listen = { tcp: `127.0.0.1:${port}` };
  const issuer = stack.use(new AgentProcess(directory(), { ...agentConfiguration(authority.url), listen }));
  await issuer.start();
  await issuer.agent.learn([key]);
  await untilLatchkeyKnown(issuer.agent);
  const [rootsDirectory, address] = [directory(), `http://127.0.0.1:${port}`];
  const signing = join(issuer.directory, 'state', 'signing');
  await setUp({ directory: signing, rootsDirectory, issuer: address }, Date.now(), ownFiles);
  const device = stack.use(
    await startDaemonProcess(directory(), {
      listen: { tcp: '127.0.0.1:0' },
      products: [{ key: productKey }],
      leases: { issuer: address, roots: [join(rootsDirectory, 'root-1.pub.jwk')] },
    }),
  );
  const verify = async (): Promise<string> => {
    const response = await fetch(`${device.tcp}/api/v2/license/verify?license_key=${key}`);
    const { data, code } = (await response.json()) as { data?: { enabled: boolean }; code?: string };
    return code ?? (data?.enabled === true ? 'enabled' : 'disabled');
  };
  const use = async (): Promise<void> => {
    const body = new URLSearchParams({ license_key: key });
    const response = await fetch(`${device.tcp}/api/v2/license/usage`, { method: 'PUT', body });
    expect(response.status).toBe(200);
  };
  const backup = join(directory(), 'backup.db');
  const backUp = async (): Promise<void> =>
    expect((await operate(issuer.directory, 'backup', backup)).code).toBe(0);
  if (backsUpFirst) await backUp();
  await eventually(async () => (await verify()) === 'enabled');
  return {
    authority,
    issuer,
    verify,
    use,
    backUp,
    async restore() {
      await issuer.kill();
      expect((await operate(issuer.directory, 'restore', backup, dropUnsent)).code).toBe(0);
      await issuer.start();
    },
    uses: async () => (await authority.license(key)).uses,
  };
}

test.each(['before', 'after'] as const)(
  'uses that a device has reported count once if its issuer is restored %s they are delivered',
  { timeout: 240_000 },
  async (when) => {
    await using stack = new AsyncDisposableStack();
    const shop = await openShop(stack);
    for (let use = 0; use < 2; use += 1) await shop.use();
    await eventually(async () => (await shop.uses()) === 2);
    await shop.backUp();
    if (when === 'before') await shop.authority.kill();
    for (let use = 0; use < 3; use += 1) await shop.use();
    if (when === 'after') await eventually(async () => (await shop.uses()) === 5);
    else {
      await eventually(async () => {
        const { pending = 0, in_flight: inFlight = 0 } = await shop.issuer.outbox();
        return pending + inFlight === 3;
      });
    }
    await shop.restore();
    if (when === 'before') await shop.authority.start();
    await shop.use();
    await eventually(async () => (await shop.uses()) >= 6);
    await pause(1_500);
    expect(await shop.uses()).toBe(6);
  },
);

test('uses of a device that a restored issuer does not know count once', { timeout: 240_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const shop = await openShop(stack, true);
  for (let use = 0; use < 3; use += 1) await shop.use();
  await eventually(async () => (await shop.uses()) === 3);
  await shop.restore();
  await shop.use();
  await eventually(async () => (await shop.uses()) >= 4);
  await pause(1_500);
  expect(await shop.uses()).toBe(4);
});

test(
  'a restored issuer signs no lease for a license that it had seen refunded, while its store is away',
  { timeout: 240_000 },
  async () => {
    await using stack = new AsyncDisposableStack();
    const shop = await openShop(stack);
    await shop.backUp();
    await shop.authority.refund(key);
    await eventually(async () => (await shop.verify()) === 'disabled');
    await shop.authority.kill();
    await shop.restore();
    const until = Date.now() + 8_000;
    while (Date.now() < until) {
      expect(await shop.verify()).toBe('disabled');
      await pause(200);
    }
  },
);
