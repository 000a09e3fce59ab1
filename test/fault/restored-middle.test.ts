import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { operate } from '../support/app/people.ts';
import {
  agentConfiguration,
  AgentProcess,
  AuthorityProcess,
  untilLatchkeyKnown,
} from '../support/harness/authority-and-agents.ts';
import { eventually } from '../support/harness/agent-harness.ts';
import { freePort } from '../support/network/free-port.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** The upstream's data of `KEY`, as a verify shows them. */
async function isEnabled({ agent }: AgentProcess): Promise<boolean | null> {
  const { status, body } = await agent.verify('KEY');
  return status === 200 ? (body as { data: { enabled: boolean } }).data.enabled : null;
}

test.each([
  ['with default ages', {}, 0],
  ['past the grace of the backup', { fresh: '10s', stale: '12s', grace: '15s', refresh: '3s' }, 9_000],
])(
  'an agent in the middle that is restored from before a refund undoes the refund nowhere: %s',
  async (_, freshness, pauseMs) => {
    await using resources = new AsyncDisposableStack();
    const directory = (): string => resources.use(temporaryDirectory()).path;
    const authority = resources.use(new AuthorityProcess(directory(), await freePort(), {}));
    await authority.start();
    await authority.sell(['KEY', 'OTHER']);
    const tcp = `127.0.0.1:${await freePort()}`;
    const above = { ...agentConfiguration(authority.url), freshness, listen: { tcp } };
    const middle = resources.use(new AgentProcess(directory(), above));
    const below = { ...agentConfiguration(`http://${tcp}`), freshness };
    const lowest = resources.use(new AgentProcess(directory(), below));
    for (const agent of [middle, lowest]) {
      await agent.start();
      await agent.agent.learn(['KEY', 'OTHER']);
      await untilLatchkeyKnown(agent.agent);
    }
    const backup = join(middle.directory, 'backup.db');
    expect(await operate(middle.directory, 'backup', backup)).toMatchObject({ code: 0 });
    await pause(pauseMs);
    await authority.refund('KEY');
    await eventually(async () => (await isEnabled(lowest)) === false);
    await authority.kill();
    await middle.kill();
    expect(await operate(middle.directory, 'restore', backup)).toMatchObject({ code: 0 });
    await middle.start();
    const seen = new Set<boolean | null>();
    for (let polls = 0; polls < 60; polls += 1) {
      seen.add(await isEnabled(lowest));
      await pause(150);
    }
    expect([...seen]).toEqual([false]);
    await authority.start();
    await eventually(async () => (await isEnabled(middle)) === false && (await isEnabled(lowest)) === false);
  },
);
