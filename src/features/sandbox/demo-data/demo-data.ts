import type { License } from '../../../domain/license.ts';
import type { Tree } from '../../../config/file/tree.ts';
import type { AdvancingTime } from '../../../daemon/system/clock.ts';
import { agentTree, type SandboxAgent } from '../agent.ts';
import { embeddedConfiguration } from '../../../config/load.ts';
import type { SandboxStore } from '../store.ts';
import { writeDemoWeek } from './agent-week.ts';
import { writeDemoYear, yearMs } from './year.ts';

/** How far in the past the clock of a sandbox with demo data begins, in ms. */
export const demoDataMs: number = yearMs;

/** The settings of a store with demo data: its history is a year long. */
export const demoStoreConfiguration: Tree = { history: { keep: '400d' } };

/** What an agent of the store needs. */
export type DemoData = {
  /** The settings of the agent. */
  configuration: Tree;
  licenses: readonly License[];
};

/**
 * Gives a store that has started, in the past, a year of sales, refunds, coupons and seats. Then the clock goes on to the
 * present.
 */
export async function addDemoYear(
  store: SandboxStore,
  { directory, time }: { directory: string; time: AdvancingTime },
): Promise<DemoData> {
  await store.goAway();
  time.advance(yearMs);
  const { productKey, productSecret } = store.credentials;
  const { shop, licenses } = await writeDemoYear(directory, { productKey, end: time.read().wall });
  await store.comeBack();
  const products = shop.products.map(({ productKey: key, name }) => ({
    key,
    name,
    secret: shop.secrets.get(key) ?? productSecret,
  }));
  return { configuration: { products, sync: { on_uncertain: 'hold' } }, licenses };
}

/** The licenses that the agent knows: those that were sold last. */
const knownLicenses = 320;

/** Starts an agent in front of the store with a week of changes and an outage. */
export async function startDemoAgent(
  agent: SandboxAgent,
  store: SandboxStore,
  { configuration, licenses, time }: DemoData & { time: AdvancingTime },
): Promise<void> {
  const directory = agent.stateDir;
  // The first start binds the agent to its upstream.
  await agent.start();
  await agent.stop();
  const tree = agentTree({ configuration, directory, store }, { tcp: '127.0.0.1:0', socket: false });
  const week = { configuration: embeddedConfiguration(tree), end: time.read().wall };
  await writeDemoWeek(directory, { ...week, licenses: licenses.slice(0, knownLicenses) });
  await agent.start();
}
