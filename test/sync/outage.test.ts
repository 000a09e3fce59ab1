import { expect, it, vi } from 'vitest';
import type { Outcome } from '../../src/domain/outbox/outcome.ts';
import type { SyncPolicy } from '../../src/service/outbox/queue.ts';
import { StorageError } from '../../src/service/ports.ts';
import { minute, second, startSyncHarness } from '../support/harness/sync-harness.ts';

const away: Outcome<never> = {
  outcome: 'not_applied',
  reason: 'unreachable',
  status: null,
  detail: 'connection refused',
  retryAfterMs: null,
};
/** After one failure, a change waits for half an hour. */
const policy: SyncPolicy = {
  reconcileAfterMs: minute,
  writers: 'single',
  onUncertain: 'infer',
  backoff: { firstMs: 60 * minute, maxMs: 60 * minute },
  goneMs: minute,
  refreshMs: 360 * minute,
  graceMs: 6_000 * minute,
};

it('the end of an outage ends the waits because of it, even if the disk is full at that moment', async () => {
  using harness = await startSyncHarness(['KEY'], { policy });
  await harness.verify('KEY');
  harness.vendor.instead = () => away;
  await harness.change('KEY', 'usage');
  await harness.time.advance(minute);
  const write = harness.writer.write.bind(harness.writer);
  let refused = 0;
  vi.spyOn(harness.writer, 'write').mockImplementation((name, ...rest) => {
    if (name !== 'endOutage' || refused > 0) return write(name, ...rest);
    refused += 1;
    return Promise.reject(new StorageError('full', new Error('no room')));
  });
  expect(harness.store.operations.head('KEY', 'counter')).toMatchObject({ outage: true });
  harness.vendor.instead = () => null;
  harness.sync.limiter.probeNow();
  await harness.time.advance(10 * second);
  expect(refused).toBe(1);
  expect(harness.vendor.licenses.get('KEY')?.uses).toBe(1);
});
