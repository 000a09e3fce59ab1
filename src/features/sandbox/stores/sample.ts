import type { ForeignStoreName } from '../../../domain/header-names.ts';
import type { AgentStore, StoreAgent } from './agent.ts';

/** One line of what a sandbox prints. */
export type SampleFact = {
  /** The member of the JSON. */
  readonly name: string;
  /** Default: `name`. */
  readonly label?: string;
  readonly value: string;
  readonly note?: string;
};

/** How long a sample does not show its late license key. */
export const lateMs = 30_000;

export function lateKey(value: string): SampleFact {
  return { name: 'late_key', label: '… late', value, note: `unknown for the first ${lateMs / 1000} s` };
}

/** A stand-in for a store that has sold a few license keys, for `sandbox --store` and `demo --store`. */
export type StoreSample = AgentStore & {
  /** What a sandbox prints, besides the addresses. */
  readonly facts: readonly SampleFact[];
  /** The arguments of `curl` for a verify. */
  readonly curl: (url: string) => string;
  /** The steps of the demo. The store and the agent are not started yet. */
  readonly play: (agent: StoreAgent, print: (line: string) => void) => Promise<void>;
};

const samples: Readonly<Record<ForeignStoreName, () => Promise<{ openSample: () => StoreSample }>>> = {
  gumroad: () => import('./gumroad-sample.ts'),
  lemonsqueezy: () => import('./lemonsqueezy-sample.ts'),
  polar: () => import('./polar-sample.ts'),
};

export async function openSample(name: ForeignStoreName): Promise<StoreSample> {
  return (await samples[name]()).openSample();
}
