import type { Dialect } from '../dialects/dialect.ts';
import { specification } from '../dialects/specification.ts';
import type { Route } from '../route.ts';
import { accountRoutes } from './account.ts';
import { auditRoutes } from './audit.ts';
import { backupRoutes } from './backup.ts';
import { collectionRoutes } from './collection.ts';
import { couponChangeRoutes } from './coupon-change.ts';
import { couponRoutes } from './coupon.ts';
import { exportRoutes } from './export.ts';
import { firstVersionRoutes } from './first-version.ts';
import { healthRoutes } from './health.ts';
import { historyRoutes } from './history.ts';
import { importRoutes } from './import.ts';
import { licenseRoutes } from './license.ts';
import { metricsRoutes } from './metrics.ts';
import { openApiRoutes } from './openapi.ts';
import { outboxRoutes } from './outbox.ts';
import { preloadRoutes } from './preload.ts';
import { productRoutes } from './product.ts';
import { purchaseRoutes } from './purchase.ts';
import { quoteRoutes } from './quote.ts';
import { redemptionRoutes } from './redemption.ts';
import { statusRoutes } from './status.ts';
import { syncRoutes } from './sync.ts';
import { tokenRoutes } from './token.ts';

/** The table of all routes in a dialect: the server, OpenAPI and the tests read it. */
export function routesOf({ license, hasFirstVersion }: Dialect): readonly Route[] {
  const firstVersion = hasFirstVersion ? firstVersionRoutes(license) : [];
  return [...licenseRoutes(license), ...firstVersion, ...sameEverywhere];
}

const sameEverywhere: readonly Route[] = [
  ...historyRoutes,
  ...couponRoutes,
  ...couponChangeRoutes,
  ...quoteRoutes,
  ...redemptionRoutes,
  ...accountRoutes,
  ...productRoutes,
  ...collectionRoutes,
  ...purchaseRoutes,
  ...importRoutes,
  ...exportRoutes,
  ...preloadRoutes,
  ...outboxRoutes,
  ...syncRoutes,
  ...backupRoutes,
  ...tokenRoutes,
  ...auditRoutes,
  ...healthRoutes,
  ...statusRoutes,
  ...metricsRoutes,
  ...openApiRoutes,
];

/** The routes of the specification's dialect. */
export const routes: readonly Route[] = routesOf(specification);
