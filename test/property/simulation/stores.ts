import { gumroad } from './at-gumroad.ts';
import type { SimulatedStore } from './at-store.ts';

export const simulatedStores = { gumroad } satisfies Record<string, SimulatedStore>;

export type SimulatedStoreName = keyof typeof simulatedStores;

export const simulatedStoreNames = Object.keys(simulatedStores) as SimulatedStoreName[];
