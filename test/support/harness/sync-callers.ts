import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually, type LicenseChangeKind } from './agent-harness.ts';
import type { AgentProcess, AuthorityAndAgents } from './authority-and-agents.ts';
import { patienceMs } from '../patience.ts';

/** Changes a license under an idempotency key, `name`, until there is an answer, also across crashes. */
export async function insist(
  agent: AgentProcess,
  licenseKey: string,
  { kind, name }: { kind: LicenseChangeKind; name: string },
): Promise<void> {
  for (let attempt = 0; attempt < 5_000; attempt += 1) {
    const answer = await Promise.resolve()
      .then(() => agent.agent.change(kind, licenseKey, { 'idempotency-key': name }))
      .catch(() => null);
    if (answer?.status === 200) return;
    await pause(20);
  }
  throw new Error(`${name} was never answered`);
}

let callersSoFar = 0;

/** Callers that record uses of the keys in turn until they are stopped. */
export class Callers {
  readonly answered: Map<string, number>;
  readonly #over = new AbortController();
  readonly #calls: Promise<void>[] = [];

  constructor(licenseKeys: readonly string[]) {
    this.answered = new Map(licenseKeys.map((key) => [key, 0]));
  }

  /** Aborts when the callers are stopped. */
  get over(): AbortSignal {
    return this.#over.signal;
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
      await insist(agent, licenseKey, { kind: 'usage', name: `use-${use}-of-${name}` });
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

type Parties = Pick<AuthorityAndAgents, 'authority' | 'agents'>;

/** The counts of the authority and of each agent, and the states of all operations. */
type Counts = {
  authority: readonly number[];
  agents: readonly (readonly number[])[];
  states: readonly string[];
};

async function countsOf({ authority, agents }: Parties, licenseKeys: readonly string[]): Promise<Counts> {
  const outboxes = await Promise.all(agents.map((agent) => agent.outbox()));
  const states = new Set(outboxes.flatMap((counts) => Object.keys(counts)));
  return {
    authority: await authority.usesOf(licenseKeys),
    agents: await Promise.all(agents.map((agent) => agent.usesOf(licenseKeys))),
    states: [...states].toSorted(),
  };
}

/** Every use is counted once, all show that, and nothing is in doubt. */
export function exactly({ agents }: Pick<Parties, 'agents'>, uses: Iterable<number>): Counts {
  return { authority: [...uses], agents: agents.map(() => [...uses]), states: ['delivered'] };
}

/** The counts when they are as expected, or else when that takes too long. */
export async function settled(
  parties: Parties,
  licenseKeys: readonly string[],
  uses: Iterable<number>,
): Promise<Counts> {
  const expected = JSON.stringify(exactly(parties, [...uses]));
  const isExact = async (): Promise<boolean> =>
    JSON.stringify(await countsOf(parties, licenseKeys)) === expected;
  // The caller compares them, and shows how they differ.
  await eventually(isExact, patienceMs).catch(() => undefined);
  for (const { agent } of parties.agents) await agent.atRest();
  return await countsOf(parties, licenseKeys);
}

/** Copies a state directory, also one that is used, as people copy files. */
export function copyState(from: string, to: string): void {
  const filter = (path: string): boolean => !path.endsWith('.sock');
  cpSync(join(from, 'state'), join(to, 'state'), { recursive: true, filter });
}
