import { consoleSection } from '../features/console/config/console.ts';
import { leasesSection } from '../features/leases/config/leases.ts';
import { storeSection } from '../features/postgres/config/store.ts';
import { webhooksSection } from '../features/webhooks/config/webhooks.ts';
import type { FeatureSection } from './core-sections.ts';

/**
 * The sections that features have in the configuration. They are no part of `features.ts`, which every thread loads:
 * only the main thread needs zod.
 */
export const featureSections: readonly FeatureSection[] = [
  storeSection,
  leasesSection,
  webhooksSection,
  consoleSection,
];
