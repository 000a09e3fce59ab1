import { join } from 'node:path';
import { stringify } from 'yaml';
import { foreignStores } from '../../../config/foreign-stores.ts';
import { makeLog } from '../../../daemon/log.ts';
import { AdvancingTime } from '../../../daemon/system/clock.ts';
import type { ForeignStoreName } from '../../../domain/header-names.ts';
import { temporaryFolder } from '../files.ts';
import { endAtSignal, runUntilSignal } from '../until-signal.ts';
import { agentTree, StoreAgent } from './agent.ts';
import { openSample, type SampleFact, type StoreSample } from './sample.ts';
import type { StandIn, StandInFault } from './stand-in.ts';

type StoreCommand = {
  port: number;
  latencyMs: number;
  errorRate: number;
  lostReplies: number;
  /** Null: the store stays. */
  offlineAfterMs: number | null;
  withAgent: boolean;
  json: boolean;
};

/** What stands in for an answer, in turn. */
const errors: readonly StandInFault[] = ['page', 'limited', 'limited_empty', 'challenge', 'lost_request'];

/** Runs a stand-in for a store until a signal, and prints what it has sold. */
export async function runStoreSandbox(name: ForeignStoreName, options: StoreCommand): Promise<never> {
  const folder = temporaryFolder();
  const sample = await openSample(name);
  const { store } = sample;
  store.latencyMs = options.latencyMs;
  store.fault = misbehave(options);
  const log = await makeLog({ level: 'warn', format: 'pretty' });
  const directory = join(folder.path, 'agent');
  const agent = new StoreAgent({ name, sample, directory, time: new AdvancingTime(), log });
  endAtSignal(async () => {
    await Promise.all([agent.stop(), store.stop()]);
    folder.close();
  });
  await store.start(options.port);
  if (options.withAgent) await agent.start();
  const agentUrl = options.withAgent ? agent.url : null;
  const facts = Object.fromEntries(sample.facts.map((fact) => [fact.name, fact.value]));
  const told = options.json
    ? JSON.stringify({ address: store.url, agent: agentUrl, ...facts })
    : describe(name, sample, agentUrl);
  process.stdout.write(`${told}\n`);
  return await runUntilSignal(options, () => store.stop());
}

function misbehave({ errorRate, lostReplies }: StoreCommand): StandIn['fault'] {
  let refused = 0;
  return () => {
    if (Math.random() < errorRate) return errors[(refused += 1) % errors.length];
    return Math.random() < lostReplies ? 'lost_answer' : undefined;
  };
}

function describe(name: ForeignStoreName, sample: StoreSample, agent: string | null): string {
  const { url } = sample.store;
  const rows = [{ name: 'address', value: url }, ...sample.facts].map(
    ({ name: member, label = member, value, note }: SampleFact) =>
      `  ${label.padEnd(17)}  ${value}${note === undefined ? '' : ` (${note})`}`,
  );
  const { access_token: _, ...upstream } = agentTree(name, sample).upstream;
  const advice =
    agent === null
      ? `Put an agent in front of it:
  upstream: ${inOneLine(upstream)}
  products: ${inOneLine(sample.settings.products)}`
      : `An agent in front of it answers on ${agent}`;
  return `A stand-in for the license API of ${foreignStores[name].title} is running. Ctrl-C ends it and removes its data.

${rows.join('\n')}

Try it:
  curl ${sample.curl(agent ?? url)}

${advice}`;
}

function inOneLine(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim();
}
