import { adminBackupRoutes } from './backup.ts';
import { adminCatalogueRoutes } from './catalogue.ts';
import { adminOutboxRoutes } from './outbox.ts';
import { adminSyncRoutes } from './sync.ts';
import { adminTokenRoutes } from './token.ts';
import { couponRoutes } from './coupon.ts';
import { healthRoutes } from './health.ts';
import { licenseRoutes } from './license.ts';
import type { Route } from '../route.ts';

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
