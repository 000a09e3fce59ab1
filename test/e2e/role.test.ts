import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startHarness } from '../support/harness/agent-harness.ts';
import { spawnDaemon, startDaemonProcess } from '../support/process/daemon-process.ts';
import { runProcess } from '../support/process/command-line.ts';
import { operate } from '../support/app/people.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const authority = { listen: { tcp: '127.0.0.1:0' } };
const agent = { ...authority, upstream: { base_url: 'http://127.0.0.1:9' } };

async function refusedStart(directory: string, configuration: object): Promise<string> {
  await using daemon = spawnDaemon(directory, configuration);
  expect(await daemon.ended).toBe(1);
  return daemon.complaints;
}

test('an agent whose upstream section is missing refuses to start, reports the waiting changes, and later sends them', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const before = await harness.startAgent();
  await before.learn(['KEY']);
  await harness.proxy.become({ kind: 'refuse' });
  expect((await before.change('usage', 'KEY')).status).toBe(200);
  await before.kill();
  const state = join(harness.directory, 'state');
  expect(await refusedStart(harness.directory, authority)).toBe(
    `latchkey: The state directory ${state} is refused: it is an agent's, and the configuration has no upstream: ` +
      'put the upstream back, or choose another state_dir for an authority. To start with an empty store here, move the files ' +
      'away first; 1 change in them did not reach the upstream, and never would.\n',
  );
  expect(existsSync(join(state, 'api.key'))).toBe(false);
  await harness.proxy.become({ kind: 'pass' });
  const after = await harness.startAgent();
  await after.atRest();
  expect(harness.upstream.countsOf('KEY').net).toBe(1);
});

test('an authority whose configuration gained an upstream refuses to start, and its state does not change', async () => {
  await using directory = temporaryDirectory();
  {
    await using before = await startDaemonProcess(directory.path, authority);
    expect((await operate(directory.path, 'product', 'add', 'Press')).code).toBe(0);
    await before.kill();
  }
  const complaint = await refusedStart(directory.path, agent);
  expect(complaint).toContain("it is an authority's, and the configuration has an upstream");
  expect(complaint).toContain('the licenses of 1 product are kept in them alone');
  await using _ = await startDaemonProcess(directory.path, authority);
});

test('a start without an upstream says that this is a store, and what makes it an agent', async () => {
  await using directory = temporaryDirectory();
  const said = 'no upstream is configured: this is a store with its own license keys, not an agent';
  {
    await using store = await startDaemonProcess(directory.path, authority);
    expect(await store.said(said)).toMatchObject({
      hint: 'to make it an agent in front of your store, write upstream.base_url and products',
    });
    await store.kill();
  }
  await using other = await startDaemonProcess(directory.path, agent);
  expect(other.lines.map(({ msg }) => msg)).not.toContain(said);
});

test('serve, config check and doctor refuse an empty configuration file', async () => {
  await using directory = temporaryDirectory();
  const file = join(directory.path, 'latchkey.yaml');
  writeFileSync(file, '# nothing yet\n', { mode: 0o600 });
  const reason = `file: has no settings: write some, or {} for a store with every default (from ${file} line 1)`;
  for (const words of [['serve'], ['config', 'check']]) {
    expect(await runProcess([...words, '--config', file])).toEqual({
      code: 78,
      out: '',
      err: `latchkey: configuration: ${reason}\n`,
    });
  }
  const doctor = await runProcess(['doctor', '--config', file]);
  expect([doctor.code, doctor.out]).toEqual([1, expect.stringContaining(`fail  ${reason}`)]);
});

test('an empty authority becomes an agent when its configuration gains an upstream', async () => {
  await using directory = temporaryDirectory();
  {
    await using before = await startDaemonProcess(directory.path, authority);
    await before.kill();
  }
  {
    await using after = await startDaemonProcess(directory.path, agent);
    await after.kill();
  }
  expect(await refusedStart(directory.path, authority)).toContain("it is an agent's");
});

test('a backup of the other role is restored only into an empty directory, not over a store', async () => {
  await using directory = temporaryDirectory();
  await using elsewhere = temporaryDirectory();
  const file = join(directory.path, 'copy.db');
  {
    await using running = await startDaemonProcess(directory.path, authority);
    expect((await operate(directory.path, 'product', 'add', 'Press')).code).toBe(0);
    expect((await operate(directory.path, 'backup', file)).code).toBe(0);
    await running.kill();
  }
  {
    await using running = await startDaemonProcess(elsewhere.path, agent);
    await running.kill();
  }
  const refused = await operate(elsewhere.path, 'restore', file);
  expect(refused.code).toBe(1);
  expect(refused.err).toContain(
    `it is an authority's, and the state directory ${join(elsewhere.path, 'state')} is an agent's`,
  );
  expect(refused.err).toContain('Nothing was changed.');
  await using third = temporaryDirectory();
  expect((await operate(third.path, 'restore', file)).code).toBe(0);
  expect(await refusedStart(third.path, agent)).toContain("it is an authority's");
});
