import { features } from '../../features.ts';
import type { Dialect } from '../dialects.ts';
import type { Route } from '../route.ts';
import { accountRoutes, tokenRoutes, auditRoutes } from './admin/access.ts';
import { processRoutes } from './process.ts';
import { collectionRoutes, productRoutes, purchaseRoutes } from './admin/catalogue.ts';
import { couponChangeRoutes } from './admin/coupon-change.ts';
import { couponRoutes } from './api/coupon.ts';
import { firstVersionRoutes } from './api/first-version.ts';
import { licenseAdminRoutes } from './admin/license.ts';
import { licenseRoutes } from './api/license.ts';
import { outboxRoutes } from './admin/outbox.ts';
import { syncRoutes } from './admin/sync.ts';
import { checkoutRoutes } from './api/checkout.ts';

declare module '../../feature.ts' {
  interface Feature {
    /** Its routes, which follow those of the core. */
    readonly routes?: () => Promise<readonly Route[]>;
  }
}

/** The table of all routes in a dialect, with those of features: the server and OpenAPI read it. */
export async function routesOf({ license, hasFirstVersion }: Dialect): Promise<readonly Route[]> {
  const firstVersion = hasFirstVersion ? firstVersionRoutes(license) : [];
  const ofFeatures = await Promise.all(features.map(async ({ routes }) => (await routes?.()) ?? []));
  return [...licenseRoutes(license), ...firstVersion, ...sameEverywhere, ...ofFeatures.flat()];
}

const sameEverywhere: readonly Route[] = [
  ...licenseAdminRoutes,
  ...couponRoutes,
  ...couponChangeRoutes,
  ...checkoutRoutes,
  ...accountRoutes,
  ...productRoutes,
  ...collectionRoutes,
  ...purchaseRoutes,
  ...outboxRoutes,
  ...syncRoutes,
  ...tokenRoutes,
  ...auditRoutes,
  ...processRoutes,
];
