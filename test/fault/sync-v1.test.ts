import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../support/harness/agent-harness.ts';
import {
  startAuthorityAndAgents,
  untilEqual,
  type AgentProcess,
  type AuthorityAndAgents,
  type AuthorityProcess,
} from '../support/harness/authority-and-agents.ts';
import { operate } from '../support/app/people.ts';
import { HttpGateway } from '../support/network/http-gateway.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { SeededRandom } from '../property/simulation/seeded-random.ts';

/** How long a measured time was, for people who read the results. */
function report(what: string, since: number): void {
  process.stderr.write(`${what}: ${Math.round(performance.now() - since)} ms\n`);
}

test('2,000 uses recorded offline arrive once each, and a refund is answered by the agent', async () => {
  const licenseKeys = Array.from({ length: 20 }, (_, index) => `KEY-${index}`);
  await using fleet = await startAuthorityAndAgents({ licenseKeys });
  const { authority, agents } = fleet;
  const [only] = agents;
  if (only === undefined) throw new Error('there is no agent');
  await authority.kill();
  await Promise.all(licenseKeys.map((key) => only.use(Array.from({ length: 100 }, () => key))));
  await authority.start();
  const back = performance.now();
  await only.agent.atRest();
  report('2,000 operations were delivered after', back);
  expect(await authority.usesOf(licenseKeys)).toEqual(licenseKeys.map(() => 100));
  expect(await only.outbox()).toEqual({ delivered: 2_000 });
  await untilEqual(fleet, licenseKeys);
  const refunded = performance.now();
  await authority.refund('KEY-3');
  await eventually(async () => {
    const { body } = await only.agent.verify('KEY-3');
    return (body as { data: { enabled: boolean } }).data.enabled === false;
  });
  report('a refund was answered after', refunded);
});

/** `npm run test:all` has 50 kills, in the project "thorough". */
const kills = Number(process.env['LATCHKEY_KILLS'] ?? 12);
const seeds = (process.env['LATCHKEY_SEEDS'] ?? '1').split(',').map(Number);

/** Records a use under a key of its own until there is an answer, also across crashes. */
async function insist(agent: AgentProcess, licenseKey: string, use: string): Promise<void> {
  for (let attempt = 0; attempt < 5_000; attempt += 1) {
    const answer = await Promise.resolve()
      .then(() => agent.agent.change('usage', licenseKey, { 'idempotency-key': use }))
      .catch(() => null);
    if (answer?.status === 200) return;
    await pause(20);
  }
  throw new Error(`${use} was never answered`);
}

let callersSoFar = 0;

/** Callers that record uses of the keys in turn until they are stopped. */
class Callers {
  readonly answered: Map<string, number>;
  readonly #over = new AbortController();
  readonly #calls: Promise<void>[] = [];

  constructor(licenseKeys: readonly string[]) {
    this.answered = new Map(licenseKeys.map((key) => [key, 0]));
  }

  get total(): number {
    return [...this.answered.values()].reduce((sum, count) => sum + count, 0);
  }

  start(agent: AgentProcess, count: number): void {
    for (let number = 0; number < count; number += 1) {
      callersSoFar += 1;
      this.#calls.push(this.#call(agent, `caller-${callersSoFar}`));
    }
  }

  async #call(agent: AgentProcess, name: string): Promise<void> {
    const licenseKeys = [...this.answered.keys()];
    for (let use = 0; !this.#over.signal.aborted; use += 1) {
      const licenseKey = licenseKeys[use % licenseKeys.length] ?? '';
      await insist(agent, licenseKey, `use-${use}-of-${name}`);
      this.answered.set(licenseKey, (this.answered.get(licenseKey) ?? 0) + 1);
      await pause(30);
    }
  }

  async until(count: number): Promise<void> {
    await eventually(() => this.total >= count);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#calls);
  }
}

/** The counts of the authority once all agents have the same, and the states of all operations. */
async function settled(
  { authority, agents }: Pick<AuthorityAndAgents, 'authority' | 'agents'>,
  licenseKeys: readonly string[],
): Promise<{ uses: readonly number[]; states: readonly string[] }> {
  await untilEqual({ authority, agents }, licenseKeys);
  const outboxes = await Promise.all(agents.map((agent) => agent.outbox()));
  const states = new Set(outboxes.flatMap((counts) => Object.keys(counts)));
  return { uses: await authority.usesOf(licenseKeys), states: [...states].toSorted() };
}

/** Every use counted once, and nothing is in doubt. */
function exactly(uses: Iterable<number>): Awaited<ReturnType<typeof settled>> {
  return { uses: [...uses], states: ['delivered'] };
}

for (const seed of seeds) {
  test(`seed ${seed}: counts are exact although the authority and its agents are killed during deliveries`, async () => {
    const licenseKeys = ['A', 'B', 'C'];
    await using fleet = await startAuthorityAndAgents({ licenseKeys, agents: 3 });
    const { authority, agents } = fleet;
    const random = new SeededRandom(seed);
    const callers = new Callers(licenseKeys);
    for (const agent of agents) callers.start(agent, 3);
    const killable: readonly (AuthorityProcess | AgentProcess)[] = [authority, ...agents];
    for (let kill = 0; kill < kills; kill += 1) {
      const killed = killable[random.chance(0.5) ? 0 : random.between(1, agents.length)] ?? authority;
      await pause(random.between(5, 150));
      await killed.kill();
      await killed.start();
    }
    await callers.stop();
    expect(await settled(fleet, licenseKeys)).toEqual(exactly(callers.answered.values()));
  });
}

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
  expect(await settled(fleet, licenseKeys)).toEqual(exactly(callers.answered.values()));
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
  expect(await settled(fleet, licenseKeys)).toEqual(exactly(total));
  expect(third?.agent.process.lines.map(({ msg }) => msg)).toContain('pushes continue from another number');
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
  expect(await settled({ authority, agents: all }, licenseKeys)).toEqual(exactly([24, 26]));
});

/** The path on Debian and its descendants (apt-get install libfaketime). */
const library = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((name) => `/usr/lib/${name}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/** The environment of a process whose wall clock is ahead. */
function ahead(days: number): Record<string, string> {
  return { LD_PRELOAD: library ?? '', FAKETIME: `+${days}d`, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}

test.skipIf(library === undefined)(
  'an agent that was off for a month counts nothing twice, nor does its copy (needs libfaketime)',
  async () => {
    let gateway: HttpGateway | null = null;
    const via = async (url: string): Promise<HttpGateway> => (gateway = await HttpGateway.start(url));
    const lose = (isLost: boolean): void => {
      if (gateway !== null) gateway.loses = (_, path) => isLost && path === '/sync/v1/push';
    };
    const licenseKeys = ['A', 'B'];
    await using elsewhere = temporaryDirectory();
    await using fleet = await startAuthorityAndAgents({ licenseKeys, via });
    const { authority, agents } = fleet;
    const [original] = agents;
    if (original === undefined) throw new Error('there is no agent');
    await original.use(['A', 'A', 'A']);
    await original.agent.atRest();
    lose(true);
    await original.use(['A']);
    await eventually(async () => (await authority.license('A')).uses === 4);
    await original.use(['B', 'B']);
    await original.kill();
    copyState(original.directory, elsewhere.path);
    lose(false);
    // A clock that jumps ahead by over 30 days removes nothing.
    for (const days of [16, 32]) {
      await authority.stop();
      await authority.start(ahead(days));
    }
    await original.start(ahead(32));
    expect(await settled(fleet, licenseKeys)).toEqual(exactly([4, 2]));
    await using copy = original.in(elsewhere.path);
    await copy.start(ahead(32));
    await copy.agent.atRest();
    expect(await authority.usesOf(licenseKeys)).toEqual([4, 2]);
    await copy.use(['A']);
    await eventually(async () => (await authority.license('A')).uses === 5);
    await eventually(async () => (await original.usesOf(['A']))[0] === 5);
  },
);

function copyState(from: string, to: string): void {
  const filter = (path: string): boolean => !path.endsWith('.sock');
  cpSync(join(from, 'state'), join(to, 'state'), { recursive: true, filter });
}

test('a gateway that hides /sync/v1 does not bring the plain protocol back', async () => {
  let gateway: HttpGateway | null = null;
  const via = async (url: string): Promise<HttpGateway> => (gateway = await HttpGateway.start(url));
  const licenseKeys = ['A', 'B'];
  await using fleet = await startAuthorityAndAgents({ licenseKeys, via });
  const [only] = fleet.agents;
  if (gateway === null || only === undefined) throw new Error('nothing was started');
  const { requests }: HttpGateway = gateway;
  await only.use(['A']);
  await only.agent.atRest();
  const hide = (answer: { status: number; body: string } | null): void => {
    if (gateway !== null) gateway.instead = (_, path) => (path.startsWith('/sync/v1') ? answer : null);
  };
  for (const answer of [
    { status: 404, body: '<h1>Not Found</h1>' },
    { status: 404, body: '{"error":"no route"}' },
    { status: 200, body: '<h1>Welcome</h1>' },
    { status: 405, body: '' },
  ]) {
    hide(answer);
    const before = requests.length;
    await only.use(['A', 'B']);
    const isPush = (request: string): boolean => request === 'POST /sync/v1/push';
    await eventually(() => requests.slice(before).filter(isPush).length >= 3);
  }
  await only.kill();
  await only.start();
  await only.use(['A', 'B']);
  await eventually(() => requests.slice(-20).includes('POST /sync/v1/push'));
  hide(null);
  expect(await settled(fleet, licenseKeys)).toEqual(exactly([6, 5]));
  const changing = requests.filter((request) => /^(PUT|POST|DELETE|PATCH) \/api\//.test(request));
  expect(changing).toEqual([]);
});
