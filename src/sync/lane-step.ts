import type { License } from '../domain/license.ts';
import type { Step } from '../domain/outbox/delivery.ts';
import type { LicenseOperationKind, Operation } from '../domain/outbox/operation.ts';
import type { Outcome } from '../domain/outbox/outcome.ts';
import type { Clock, Log, Upstream } from '../service/ports.ts';
import type { CommandOf, Writer } from '../service/writer.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { UpstreamMeter } from '../service/status.ts';
import type { Reader } from '../service/tables.ts';
import type { LaneKey } from '../service/outbox/tables.ts';
import type { CouponSync } from './coupon-sync.ts';
import type { KeyLanes, LaneGuard } from './key-lanes.ts';
import { tellOfOtherWriter } from './other-writer.ts';
import { persist } from './persist.ts';
import type { LicensePull } from './pull.ts';
import type { Uplink } from './uplink/uplink.ts';

export type StepParts = {
  reader: Reader;
  writer: Writer;
  upstream: Upstream;
  clock: Clock;
  log: Log;
  meter: UpstreamMeter;
  lanes: KeyLanes;
  uplink: Uplink;
  reads: LicensePull;
  coupons: CouponSync;
  settings: () => { policy: SyncPolicy };
  /** Called when an operation has its answer, which is being recorded from now on: nothing is on its way. */
  onAnswered: () => void;
  /** Called when that is recorded, or cannot be. */
  onRecorded: () => void;
  /** Ends requests under way. */
  lifetime: AbortSignal;
};

/** Takes one step of a lane: a send, or a read and what follows from it at once. */
export async function takeStep(parts: StepParts, lane: LaneKey, signal: AbortSignal): Promise<void> {
  const { reader, lanes, uplink, reads, coupons } = parts;
  {
    using guard = await lanes.enter(lane.subject, [lane.lane], signal);
    const needs = await follow(parts, { lane, justRead: false, guard }, signal);
    if (needs !== 'read') return;
  }
  if (lane.lane === 'coupon') {
    const head = reader.operations.head(lane.subject, lane.lane);
    if (head !== null) await coupons.settle(head);
    return;
  }
  using guard = await lanes.enter(lane.subject, ['counter', 'state'], signal);
  const admission = await uplink.admit('push', signal);
  if (!admission.admitted || lane.productKey === null) return;
  const outcome = await reads.readNow(lane.productKey, lane.subject);
  if (outcome.outcome === 'applied' && !outcome.isCached)
    await follow(parts, { lane, justRead: true, guard }, signal);
}

/** Plans the next step of a lane and sends what is to be sent; a read is left to the caller, who holds one lane only. */
async function follow(
  parts: StepParts,
  { lane, justRead, guard }: { lane: LaneKey; justRead: boolean; guard: LaneGuard },
  signal: AbortSignal,
): Promise<'read' | 'nothing'> {
  const command = { subject: lane.subject, lane: lane.lane, justRead };
  // What held up a plan on a full disk may have taken long: it is admitted anew each time.
  const planned = await persist(parts.clock, signal, () => planAdmitted(parts, command, signal));
  if (planned === null) return 'nothing';
  if (planned.step === 'send') {
    await send(parts, planned.operation, guard);
    return 'nothing';
  }
  parts.uplink.giveBack();
  return planned.step === 'read' ? 'read' : 'nothing';
}

/** Null when nothing may go up now; a step that is no send has its admission to give back. */
async function planAdmitted(
  { writer, uplink }: StepParts,
  command: CommandOf<'planStep'>,
  signal: AbortSignal,
): Promise<Step | null> {
  // Wait for the rate limit first: an operation that is marked in flight must be sent at once.
  const admission = await uplink.admit('push', signal);
  if (!admission.admitted) return null;
  try {
    const planned = await writer.write('planStep', command);
    return planned.ok ? planned.value : { step: 'none' };
  } catch (error) {
    uplink.giveBack();
    throw error;
  }
}

async function send(parts: StepParts, operation: Operation, guard: LaneGuard): Promise<void> {
  const { writer, clock, log, uplink, coupons, settings, lifetime } = parts;
  if (operation.kind === 'create_coupon') {
    await coupons.send(operation);
    return;
  }
  const sentAt = clock.steady();
  const outcome = await request(parts, operation);
  uplink.observe(outcome, { owner: operation.productKey, subject: operation.subject, sentAt });
  const { policy } = settings();
  parts.onAnswered();
  const recorded = await persist(clock, lifetime, () => {
    // While a full disk kept the answer back, the other lane may have been sent something, and answered.
    const { overlapped } = guard;
    return writer.write('recordAnswer', { operationId: operation.id, outcome, overlapped, policy });
  }).finally(parts.onRecorded);
  if (!recorded.ok) return;
  const { unexpected, state, lastError: error } = recorded.value;
  const { id, subject: licenseKey, requestId } = operation;
  if (unexpected !== null) tellOfOtherWriter(parts, { operation: id, licenseKey, ...unexpected }, policy);
  if (state !== 'delivered' && state !== 'inferred') {
    const about = { operation: id, licenseKey, state, error, requestId };
    log.warn(about, 'an operation was not delivered');
  }
}

function request({ upstream, lifetime }: StepParts, operation: Operation): Promise<Outcome<License>> {
  const { productKey, subject, kind, requestId } = operation;
  if (productKey === null || !isLicenseKind(kind))
    throw new Error(`operation ${operation.id} has no product`);
  return upstream.change({ productKey, licenseKey: subject, kind, requestId }, lifetime);
}

function isLicenseKind(kind: Operation['kind']): kind is LicenseOperationKind {
  return kind === 'usage' || kind === 'decrease' || kind === 'disable' || kind === 'enable';
}
