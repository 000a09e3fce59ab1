import { agentLicenseService, type TakesChange } from '../../../src/service/agent/license.ts';
import type { LicenseService } from '../../../src/service/services.ts';
import { silent } from '../silent-log.ts';
import { key, productKey, type ManualHarness } from './manual-harness.ts';
import { hour, second } from './service-harness.ts';

/** Who sees the product of the harness, and nothing else. */
export const tenant = { accountId: 'default', productKey };

/** A use of the key of the harness. */
export const usage = {
  tenant,
  licenseKey: key,
  trigger: 'usage',
  actor: 'product:press',
  idempotency: null,
  waitMs: 0,
} as const;

/** The licenses of an agent as its callers see them. `productIds`: of its configuration. */
export function licensesOf(
  harness: ManualHarness,
  {
    productIds = [productKey],
    takes,
    refreshMs = 6 * hour,
  }: { productIds?: readonly string[]; takes?: TakesChange; refreshMs?: number } = {},
): LicenseService {
  const { store: reader, writer, clock, sync, freshness, maxPending } = harness;
  harness.options = { ...harness.options, productIds };
  return agentLicenseService({
    reader,
    writer,
    clock,
    log: silent,
    fetcher: sync.fetcher,
    deliveries: sync.delivery,
    takes,
    productIds: () => productIds,
    settings: () => ({ freshness, maxPending, refreshMs, unknownMs: 0, timeoutMs: 10 * second }),
  });
}
