import type { Configuration } from '../../../config/configuration.ts';
import { defaultAccountId } from '../../../domain/access/principal.ts';
import type { License } from '../../../domain/license.ts';
import type { Outcome } from '../../../domain/outbox/outcome.ts';
import { dayMs, hourMs, minuteMs } from '../../../domain/time.ts';
import { storedProducts } from '../../../service/agent/products.ts';
import type { SyncPolicy } from '../../../service/outbox/queue.ts';
import { LiveConfiguration } from '../../../daemon/live-configuration.ts';
import { writeMinutes, type Outage } from './minutes.ts';
import { SeededRandom, fillStore, type DemoEvent, type PastWriter } from './past-writer.ts';

/** The outage of the demo data, some hours before `end`. */
function demoOutage(end: number): Outage {
  return { from: end - 7 * hourMs, to: end - 4.5 * hourMs };
}

type Week = {
  writer: PastWriter;
  random: SeededRandom;
  current: LiveConfiguration;
  policy: SyncPolicy;
  end: number;
  outage: Outage;
};

/** A license that the agent knows, and its product at the agent. */
type Known = { license: License; productId: string };

/**
 * Fills the store of an agent with a week that ends at `end`: licenses of the upstream, changes, an outage, and changes
 * that wait for a person. The agent has started before, so that it knows its upstream.
 */
export async function writeDemoWeek(
  directory: string,
  {
    configuration,
    licenses,
    end,
  }: { configuration: Configuration; licenses: readonly License[]; end: number },
): Promise<void> {
  await fillStore({ directory, role: 'agent' }, async (writer) => {
    const current = new LiveConfiguration(configuration, storedProducts(writer.reader.settings));
    const random = new SeededRandom(20_260_307);
    const { policy } = current.sync();
    const week: Week = { writer, random, current, policy, end, outage: demoOutage(end) };
    const known = licenses.flatMap((license) => {
      const productId = current.products.idOf(license.productKey);
      return productId === null ? [] : [{ license, productId }];
    });
    const events = [
      ...doubtEvents(week, known),
      ...known.flatMap((each, index) => lifeOf(week, each, index)),
    ];
    for (const { at, run } of events.toSorted((one, other) => one.at - other.at)) await run(at);
    await writeMinutes({ ...week, busiest: 42 });
    const actor = 'token:admin.token';
    const token = { scopes: ['verify', 'use'] as const, label: 'Till in the shop', productKey: null };
    const issued = { ...token, accountId: defaultAccountId, expiresAt: null, isAgent: true };
    await writer.run('issueToken', issued, { at: end - 6 * dayMs, actor });
  });
}

/** The outcome of a request that the upstream has answered. */
function applied(value: License, at: number): Outcome<License> {
  return { outcome: 'applied', value, confirmedAt: at, isCached: false };
}

function unreachable(): Outcome<License> {
  const detail = 'connection refused';
  return { outcome: 'not_applied', reason: 'unreachable', status: null, detail, retryAfterMs: null };
}

async function read(
  { writer, policy }: Week,
  known: Known,
  outcome: Outcome<License>,
  at: number,
): Promise<void> {
  const { license, productId } = known;
  const command = {
    licenseKey: license.licenseKey,
    productId,
    outcome,
    sentAt: at,
    isMissingConfirmed: true,
  };
  await writer.run('recordRead', { ...command, policy }, { at });
}

/** A change of the software on this machine. Returns the id of its operation; null: no change was needed. */
async function change(
  { writer, current }: Week,
  { license, productId }: Known,
  trigger: 'usage' | 'decrease' | 'enable' | 'disable',
  at: number,
): Promise<string | null> {
  const { freshness } = current.configuration;
  const command = { productIds: [productId], licenseKey: license.licenseKey, trigger, freshness };
  const actor = `product:${license.productKey}`;
  const { operationId } = await writer.run('queueChange', { ...command, maxPending: 100_000 }, { at, actor });
  return operationId;
}

/** Sends the first operation of a queue, and records the answer. */
async function attempt(
  { writer, policy }: Week,
  { license: { licenseKey } }: Known,
  outcome: Outcome<License>,
  { at, queue = 'counter' }: { at: number; queue?: 'counter' | 'state' },
): Promise<void> {
  const step = await writer.run('planStep', { subject: licenseKey, queue, justRead: true }, { at });
  if (step.step !== 'send') return;
  const command = { operationId: step.operation.id, outcome, overlapped: false, policy };
  await writer.run('recordResponse', command, { at: at + 120 });
}

/** How long ago the license was last confirmed: most of them today. */
function confirmedAgo(random: SeededRandom): number {
  const share = random.fraction();
  if (share < 0.72) return random.fraction() * 20 * hourMs;
  if (share < 0.88) return (1.1 + random.fraction() * 5) * dayMs;
  if (share < 0.96) return (7.5 + random.fraction() * 6) * dayMs;
  return (15 + random.fraction() * 20) * dayMs;
}

/** A license is read, and the uses of today are sent; during the outage they wait. */
function lifeOf(week: Week, known: Known, index: number): DemoEvent[] {
  const { random, end, outage } = week;
  const { license } = known;
  const seenAt = Math.round(end - confirmedAgo(random));
  const isUsed =
    license.uses > 0 && license.enabled && end - seenAt > 8 * hourMs && end - seenAt < 20 * hourMs;
  const before = { ...license, uses: license.uses - (isUsed ? 1 : 0) };
  const events: DemoEvent[] = [{ at: seenAt, run: (at) => read(week, known, applied(before, at), at) }];
  if (!isUsed) return events;
  const isInOutage = index % 2 === 0;
  const usedAt = isInOutage
    ? Math.round(outage.from + random.fraction() * (outage.to - outage.from - 10 * minuteMs))
    : Math.round(seenAt + random.fraction() * 30 * minuteMs);
  events.push({ at: usedAt, run: (at) => change(week, known, 'usage', at) });
  if (isInOutage) events.push({ at: usedAt + 500, run: (at) => attempt(week, known, unreachable(), { at }) });
  const sentAt = isInOutage ? outage.to + 20 * minuteMs + index * 300 : usedAt + 400;
  events.push({ at: sentAt, run: (at) => attempt(week, known, applied(license, at), { at }) });
  return events;
}

/** Changes that wait for a person: held, refused, and undone by a revocation. Takes the licenses for them from `known`. */
function doubtEvents(week: Week, known: Known[]): DemoEvent[] {
  const take = (matches: (license: License) => boolean): Known[] => {
    const index = known.findIndex(({ license }) => matches(license));
    return index === -1 ? [] : known.splice(index, 1);
  };
  const isUsed = ({ uses, enabled }: License): boolean => enabled && uses > 1;
  return [
    ...take(isUsed).flatMap((each) => lostUse(week, each, week.outage.from + 10 * minuteMs)),
    ...take(isUsed).flatMap((each) => lostUse(week, each, week.outage.from + 35 * minuteMs)),
    ...take(isUsed).flatMap((each) => refusedUse(week, each, week.end - 26 * hourMs)),
    ...take(({ enabled }) => !enabled).flatMap((each) => revoked(week, each, week.end - 3 * dayMs)),
  ];
}

/** The answer to a use was lost, and the count that was read later could come from another machine as well. */
function lostUse(week: Week, known: Known, from: number): DemoEvent[] {
  const { license } = known;
  const lost: Outcome<License> = {
    outcome: 'ambiguous',
    status: null,
    detail: 'the connection was closed before the answer',
    retryAfterMs: null,
  };
  const before = { ...license, uses: license.uses - 1 };
  return [
    { at: from - 2 * hourMs, run: (at) => read(week, known, applied(before, at), at) },
    { at: from, run: (at) => change(week, known, 'usage', at) },
    { at: from + 100, run: (at) => attempt(week, known, lost, { at }) },
    { at: week.outage.to + 5 * minuteMs, run: (at) => read(week, known, applied(license, at), at) },
  ];
}

/** The upstream refuses a use for good. */
function refusedUse(week: Week, known: Known, from: number): DemoEvent[] {
  const detail = '422: The license key does not belong to this product.';
  const refused: Outcome<License> = {
    outcome: 'not_applied',
    reason: 'refused',
    status: 422,
    detail,
    retryAfterMs: null,
  };
  return [
    { at: from - hourMs, run: (at) => read(week, known, applied(known.license, at), at) },
    { at: from, run: (at) => change(week, known, 'usage', at) },
    { at: from + 100, run: (at) => attempt(week, known, refused, { at }) },
  ];
}

/** A license is enabled here while the upstream has disabled it: the revocation wins. */
function revoked(week: Week, known: Known, from: number): DemoEvent[] {
  const enabled = { ...known.license, enabled: true };
  return [
    { at: from - 2 * dayMs, run: (at) => read(week, known, applied(enabled, at), at) },
    { at: from, run: (at) => change(week, known, 'enable', at) },
    { at: from + 200, run: (at) => read(week, known, applied(known.license, at), at) },
  ];
}
