import type { Dialect } from '../dialects/dialect.ts';
import { specification } from '../dialects/specification.ts';
import type { Route } from '../route.ts';
import { accountRoutes } from './admin/account.ts';
import { auditRoutes } from './admin/audit.ts';
import { backupRoutes } from './admin/backup.ts';
import { collectionRoutes } from './admin/collection.ts';
import { couponChangeRoutes } from './admin/coupon-change.ts';
import { couponRoutes } from './api/coupon.ts';
import { exportRoutes } from './admin/export.ts';
import { firstVersionRoutes } from './api/first-version.ts';
import { healthRoutes } from './health.ts';
import { historyRoutes } from './admin/history.ts';
import { importRoutes } from './admin/import.ts';
import { licenseRoutes } from './api/license.ts';
import { metricsRoutes } from './metrics.ts';
import { openApiRoutes } from './openapi.ts';
import { outboxRoutes } from './admin/outbox.ts';
import { preloadRoutes } from './admin/preload.ts';
import { productRoutes } from './admin/product.ts';
import { purchaseRoutes } from './admin/purchase.ts';
import { quoteRoutes } from './api/quote.ts';
import { redemptionRoutes } from './api/redemption.ts';
import { statusRoutes } from './status.ts';
import { syncRoutes } from './admin/sync.ts';
import { tokenRoutes } from './admin/token.ts';

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
