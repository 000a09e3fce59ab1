import { auditRoutes } from './audit.ts';
import { backupRoutes } from './backup.ts';
import { historyRoutes } from './history.ts';
import { accountRoutes } from './account.ts';
import { collectionRoutes } from './collection.ts';
import { productRoutes } from './product.ts';
import { purchaseRoutes } from './purchase.ts';
import { outboxRoutes } from './outbox.ts';
import { syncRoutes } from './sync.ts';
import { tokenRoutes } from './token.ts';
import { couponRoutes } from './coupon.ts';
import { quoteRoutes } from './quote.ts';
import { redemptionRoutes } from './redemption.ts';
import { healthRoutes } from './health.ts';
import { metricsRoutes } from './metrics.ts';
import { openApiRoutes } from './openapi.ts';
import { statusRoutes } from './status.ts';
import { licenseRoutes } from './license.ts';
import type { Route } from '../route.ts';

/** The table of all routes: the server, OpenAPI and the tests read it. */
export const routes: readonly Route[] = [
  ...licenseRoutes,
  ...historyRoutes,
  ...couponRoutes,
  ...quoteRoutes,
  ...redemptionRoutes,
  ...accountRoutes,
  ...productRoutes,
  ...collectionRoutes,
  ...purchaseRoutes,
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
