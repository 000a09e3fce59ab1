import type { Feature } from '../../feature.ts';
import type { Locks } from '../../service/locks.ts';

/** One import after the other. */
const imports = (): Locks => ({ imports: [] });

/** Import from other stores, and export. */
export const bulk: Feature = {
  name: 'bulk',
  routes: async () => {
    const [{ importRoutes }, { exportRoutes }] = await Promise.all([
      import('./http/import.ts'),
      import('./http/export.ts'),
    ]);
    return [...importRoutes, ...exportRoutes];
  },
  useCases: {
    load: () => import('./service/use-cases.ts'),
    locks: { importLicenses: imports, importPurchases: imports, importCoupons: imports },
  },
  longReads: { exportPage: async () => (await import('./wire/export.ts')).exportPage },
  subcommands: {
    license: async () => (await import('./cli/commands.ts')).license,
    purchase: async () => (await import('./cli/commands.ts')).purchase,
    coupon: async () => (await import('./cli/commands.ts')).coupon,
  },
};
