import { gumroad } from './at-gumroad.ts';
import { polar } from './at-polar.ts';
import type { SimulatedStore } from './at-store.ts';

export const simulatedStores = { gumroad, polar } satisfies Record<string, SimulatedStore>;

export type SimulatedStoreName = keyof typeof simulatedStores;

export const simulatedStoreNames = Object.keys(simulatedStores) as SimulatedStoreName[];
