import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { operate } from '../support/app/people.ts';
import { startAuthorityAndAgents } from '../support/harness/authority-and-agents.ts';
import { Callers, copyState, exactly, settled } from '../support/harness/sync-callers.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('an authority that was restored from an older backup gets the changes again that it has lost, each once', async () => {
  const licenseKeys = ['A', 'B', 'C'];
  await using fleet = await startAuthorityAndAgents({ licenseKeys, agents: 3 });
  const { authority, agents } = fleet;
  const [first, second, third] = agents;
  const callers = new Callers(licenseKeys);
  for (const agent of agents) callers.start(agent, 2);
  await callers.until(60);
  const backup = join(authority.directory, 'backup.db');
  expect(await operate(authority.directory, 'backup', backup)).toMatchObject({ code: 0 });
  await callers.until(150);
  await callers.stop();
  expect(await settled(fleet, licenseKeys, [...callers.answered.values()])).toEqual(
    exactly(fleet, [...callers.answered.values()]),
  );
  const later = new Callers(licenseKeys);
  // The third agent has nothing new to send.
  for (const agent of [first, second]) if (agent !== undefined) later.start(agent, 2);
  await later.until(20);
  await authority.stop();
  expect(await operate(authority.directory, 'restore', backup)).toMatchObject({ code: 0 });
  await authority.start();
  await later.until(later.total + 40);
  await later.stop();
  const total = licenseKeys.map((key) => (callers.answered.get(key) ?? 0) + (later.answered.get(key) ?? 0));
  expect(await settled(fleet, licenseKeys, total)).toEqual(exactly(fleet, total));
  expect(third?.agent.process.lines.map(({ msg }) => msg)).toContain(
    'the upstream was restored: what was delivered is sent again',
  );
});

test('a copied state directory counts nothing twice, and the original and the copy both go on', async () => {
  const licenseKeys = ['A', 'B'];
  await using elsewhere = temporaryDirectory();
  await using whileRunning = temporaryDirectory();
  await using fleet = await startAuthorityAndAgents({ licenseKeys });
  const { authority, agents } = fleet;
  const [original] = agents;
  if (original === undefined) throw new Error('there is no agent');
  await original.use(['A']);
  await original.agent.atRest();
  await authority.kill();
  await original.use(Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? 'A' : 'B')));
  copyState(original.directory, whileRunning.path);
  await original.kill();
  copyState(original.directory, elsewhere.path);
  await original.start();
  await using copy = original.in(elsewhere.path);
  await using running = original.in(whileRunning.path);
  await Promise.all([copy.start(), running.start()]);
  await authority.start();
  const all = [original, copy, running];
  for (const { agent } of all) await agent.atRest();
  for (const agent of all) await agent.use(['A', 'B', 'B']);
  expect(await settled({ authority, agents: all }, licenseKeys, [24, 26])).toEqual(
    exactly({ agents: all }, [24, 26]),
  );
});

test('an agent that was restored from a backup sends its changes again under their ids, and none counts twice', async () => {
  const licenseKeys = ['A', 'B'];
  await using fleet = await startAuthorityAndAgents({ licenseKeys });
  const { authority, agents } = fleet;
  const [only] = agents;
  if (only === undefined) throw new Error('there is no agent');
  await only.use(['A', 'B']);
  await only.agent.atRest();
  await authority.kill();
  await only.use(['A', 'B', 'A']);
  const backup = join(only.directory, 'backup.db');
  expect(await operate(only.directory, 'backup', backup)).toMatchObject({ code: 0 });
  await authority.start();
  await only.agent.atRest();
  await only.use(['B', 'B']);
  await only.agent.atRest();
  await only.kill();
  expect(await operate(only.directory, 'restore', backup)).toMatchObject({ code: 0 });
  await only.start();
  await only.use(['A']);
  expect(await settled(fleet, licenseKeys, [4, 4])).toEqual(exactly(fleet, [4, 4]));
});

test('an older copy of a state directory that is put back in its place counts nothing twice', async () => {
  const licenseKeys = ['A', 'B'];
  await using copy = temporaryDirectory();
  await using fleet = await startAuthorityAndAgents({ licenseKeys });
  const { authority, agents } = fleet;
  const [only] = agents;
  if (only === undefined) throw new Error('there is no agent');
  await only.use(['A', 'B']);
  await only.agent.atRest();
  await authority.kill();
  await only.use(['A', 'B', 'A']);
  await only.kill();
  copyState(only.directory, copy.path);
  await authority.start();
  await only.start();
  await only.agent.atRest();
  for (const key of ['A', 'B', 'B']) {
    await only.use([key]);
    await only.agent.atRest();
  }
  await only.kill();
  rmSync(join(only.directory, 'state'), { recursive: true });
  copyState(copy.path, only.directory);
  await only.start();
  await only.use(['A']);
  expect(await settled(fleet, licenseKeys, [5, 4])).toEqual(exactly(fleet, [5, 4]));
});

test('an authority whose database was put back by hand gets the changes again that it has lost', async () => {
  const licenseKeys = ['A', 'B'];
  await using copy = temporaryDirectory();
  await using fleet = await startAuthorityAndAgents({ licenseKeys, agents: 2 });
  const { authority, agents } = fleet;
  for (const agent of agents) await agent.use(['A', 'B']);
  for (const { agent } of agents) await agent.atRest();
  await authority.stop();
  copyState(authority.directory, copy.path);
  await authority.start();
  for (const agent of agents) await agent.use(['A', 'B', 'A']);
  for (const { agent } of agents) await agent.atRest();
  await authority.stop();
  rmSync(join(authority.directory, 'state'), { recursive: true });
  copyState(copy.path, authority.directory);
  await authority.start();
  expect(await settled(fleet, licenseKeys, [6, 4])).toEqual(exactly(fleet, [6, 4]));
});
