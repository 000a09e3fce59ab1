import type { Feature } from './feature.ts';
import { bulk } from './features/bulk/feature.ts';
import { buyers } from './features/buyers/feature.ts';
import { console } from './features/console/feature.ts';
import { customers } from './features/customers/feature.ts';
import { following } from './features/following/feature.ts';
import { install } from './features/install/feature.ts';
import { leases } from './features/leases/feature.ts';
import { postgres } from './features/postgres/feature.ts';
import { sandbox } from './features/sandbox/feature.ts';
import { webhooks } from './features/webhooks/feature.ts';

/**
 * The features of this build. Only this file of the core, `config/feature-sections.ts` and `config/public-settings.ts` name
 * them.
 */
export const features: readonly Feature[] = [
  sandbox,
  install,
  bulk,
  following,
  postgres,
  leases,
  webhooks,
  customers,
  console,
  buyers,
];
