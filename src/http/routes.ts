import { adminBackupRoutes } from './admin-backup-routes.ts';
import { adminCatalogueRoutes } from './admin-catalogue-routes.ts';
import { adminOutboxRoutes } from './admin-outbox-routes.ts';
import { adminSyncRoutes } from './admin-sync-routes.ts';
import { adminTokenRoutes } from './admin-token-routes.ts';
import { couponRoutes } from './coupon-routes.ts';
import { healthRoutes } from './health-routes.ts';
import { licenseRoutes } from './license-routes.ts';
import type { Route } from './route.ts';

/** The one table of routes: they are served, described and tested from it. */
export const routes: readonly Route[] = [
  ...licenseRoutes,
  ...couponRoutes,
  ...adminCatalogueRoutes,
  ...adminOutboxRoutes,
  ...adminSyncRoutes,
  ...adminBackupRoutes,
  ...adminTokenRoutes,
  ...healthRoutes,
];
