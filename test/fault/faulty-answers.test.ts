import { expect, test } from 'vitest';
import {
  hasty,
  startAgentHarness,
  tooLateMs,
  type Agent,
  type AgentHarness,
  type LicenseChangeKind,
} from '../support/harness/agent-harness.ts';
import {
  cutBody,
  delayResponse,
  emptyResponse,
  firewallPage,
  hang,
  loseResponse,
  loseRequest,
  outliveCaller,
  rateLimited,
  redirect,
  refusal,
  serverError,
  corruptBody,
  truncateBody,
  type Fault,
  type LedgerEntryDraft,
} from '../support/harness/plain-upstream.ts';

const faults: Readonly<Record<string, () => Fault>> = {
  'the request is lost': () => loseRequest,
  'the response is lost': () => loseResponse,
  'the request is applied but never answered': () => hang(true),
  'the request is neither applied nor answered': () => hang(false),
  'the request arrives after its caller has given up': () => outliveCaller,
  'the response comes after its caller has given up': () => delayResponse(tooLateMs),
  'a gateway answers 503 in HTML': () => serverError(503),
  'a gateway answers 500 in HTML although the request was applied': () => serverError(500, true),
  'a firewall answers 403 in HTML': () => firewallPage(403),
  'a 404 has no body': () => emptyResponse(404),
  'a 200 has a welcome page': () => corruptBody(),
  'a 200 has JSON of another shape': () => corruptBody('{"data":[]}', 'application/json'),
  'a 200 has half of its body': () => truncateBody,
  'the connection ends within the body': () => cutBody,
  'a redirect comes': () => redirect('/api/v2/elsewhere'),
  'a 429 asks to wait a second': () => rateLimited(1),
  'a 409 comes as JSON': () => refusal(409),
};

const changes = ['usage', 'decrease', 'disable', 'enable'] as const;
const usesBefore = 5;
type Cell = {
  kind: LicenseChangeKind | 'create_coupon';
  circumstance: string;
  /** The license key or coupon code of this cell only. */
  subject: string;
};

/** How many requests of an operation meet the fault before one succeeds. A 429 also delays all other requests. */
function faultyAttempts({ kind, circumstance }: Cell): number {
  // A 409 repeats for every attempt, because the caller may have gone before the first response arrives.
  if (kind === 'create_coupon' && circumstance.includes('409')) return Infinity;
  return circumstance.includes('429') ? 1 : 2;
}

const cells: readonly Cell[] = Object.keys(faults).flatMap((circumstance, index) =>
  [...changes, 'create_coupon' as const].map((kind) => ({ kind, circumstance, subject: `${kind}-${index}` })),
);

function harnessWithCells(configuration: object): Promise<AgentHarness> {
  const licenses = cells
    .filter(({ kind }) => kind !== 'create_coupon')
    .map(({ kind, subject }) => ({ licenseKey: subject, uses: usesBefore, enabled: kind !== 'enable' }));
  return startAgentHarness({ licenses, configuration: { ...hasty, ...configuration } });
}

/** The first attempts of every cell meet its fault; returns how often each cell met it. */
function corrupt(
  { upstream }: AgentHarness,
  meanwhile: (cell: Cell, met: number) => void = () => undefined,
): Map<string, number> {
  const met = new Map<string, number>();
  const bySubject = new Map(cells.map((cell) => [cell.subject, cell]));
  upstream.fault = (request: LedgerEntryDraft): Fault | undefined => {
    const cell = bySubject.get(request.licenseKey ?? request.parameters['code'] ?? '');
    const before = met.get(cell?.subject ?? '') ?? 0;
    if (cell === undefined || cell.kind !== request.kind) return undefined;
    if (before >= faultyAttempts(cell)) return undefined;
    met.set(cell.subject, before + 1);
    meanwhile(cell, before);
    return faults[cell.circumstance]?.();
  };
  return met;
}

/**
 * Sends every cell's request, twice if it counts; returns how many requests of each cell were answered 2xx.
 */
async function askForAll(agent: Agent): Promise<Map<string, number>> {
  const answered = new Map<string, number>();
  const ask = async ({ kind, subject }: Cell): Promise<void> => {
    const { status } = await (kind === 'create_coupon'
      ? agent.createCoupon({ code: subject })
      : agent.change(kind, subject));
    if (status < 300) answered.set(subject, (answered.get(subject) ?? 0) + 1);
  };
  const again = cells.filter(({ kind }) => kind === 'usage' || kind === 'decrease');
  await Promise.all([...cells, ...again].map(ask));
  return answered;
}

type Upshot = { uses: number; enabled: boolean } | { coupons: number };

/** The final state of the upstream, by cell. */
function upshots({ upstream }: AgentHarness): Record<string, Upshot> {
  const upshotOf = ({ kind, subject }: Cell): Upshot => {
    if (kind === 'create_coupon') {
      return { coupons: upstream.coupons.filter(({ code }) => code === subject).length };
    }
    const { uses, enabled } = upstream.license(subject);
    return { uses, enabled };
  };
  return Object.fromEntries(cells.map((cell) => [nameOf(cell), upshotOf(cell)]));
}

/** The state that callers were promised, by cell. */
function promises(answered: Map<string, number>): Record<string, Upshot> {
  const promiseOf = ({ kind, subject }: Cell): Upshot => {
    const count = answered.get(subject) ?? 0;
    if (kind === 'create_coupon') return { coupons: count };
    const sign = { usage: 1, decrease: -1, disable: 0, enable: 0 }[kind];
    return { uses: usesBefore + sign * count, enabled: kind !== 'disable' };
  };
  return Object.fromEntries(cells.map((cell) => [nameOf(cell), promiseOf(cell)]));
}

function nameOf({ kind, circumstance }: Cell): string {
  return `${kind}, when ${circumstance}`;
}

const refusals = [
  'create_coupon, when a 429 asks to wait a second',
  'create_coupon, when a 409 comes as JSON',
];

/** The upstream has exactly what the callers were promised, except for what it refused for good. */
async function expectAsAnswered(harness: AgentHarness, answered: Map<string, number>): Promise<void> {
  const dead = await harness.agent.operations('dead');
  const asRefused = { kind: 'create_coupon', last_error: 'HTTP 409: Refused' };
  expect(dead).toMatchObject(dead.map(() => asRefused));
  const refused = cells.find((cell) => dead.length > 0 && nameOf(cell) === refusals[1]);
  answered.delete(refused?.subject ?? '');
  expect(upshots(harness)).toEqual(promises(answered));
  expect((await harness.agent.status()).outbox).toMatchObject({ conflicted: 0 });
  // An operation that a person resends may have arrived before.
  const inferred = await harness.agent.operations('inferred');
  expect(inferred).toMatchObject(inferred.map(() => ({ kind: 'enable' })));
}

/** No breaker here: the fault of one operation must not keep another operation from meeting its own fault. */
const oneByOne = { sync: { breaker: { failures: 100_000 }, concurrency: 32 } };

test.concurrent(
  'every operation × every fault of the upstream: an operation that meets the fault counts once',
  async () => {
    await using harness = await harnessWithCells(oneByOne);
    const met = corrupt(harness);
    const answered = await askForAll(harness.agent);
    await harness.agent.decideHeldEnables();
    expect(cells.filter(({ subject }) => !met.has(subject)).map(nameOf)).toEqual([]);
    // Only a coupon creation waits for the upstream's response, so only a creation can be refused.
    const refused = cells.filter(({ subject }) => !answered.has(subject)).map(nameOf);
    expect(refusals).toEqual(expect.arrayContaining(refused));
    await expectAsAnswered(harness, answered);
    expect(harness.upstream.ledger.filter(({ kind }) => kind === 'other')).toEqual([]);
  },
);

test.concurrent(
  'every operation × every fault of the upstream: an operation recorded during an outage counts once',
  async () => {
    await using harness = await harnessWithCells(oneByOne);
    await harness.proxy.become({ kind: 'refuse' });
    const answered = await askForAll(harness.agent);
    expect(cells.filter(({ subject }) => !answered.has(subject)).map(nameOf)).toEqual([]);
    const met = corrupt(harness);
    await harness.proxy.become({ kind: 'pass' });
    await harness.agent.decideHeldEnables();
    expect(cells.filter(({ subject }) => !met.has(subject)).map(nameOf)).toEqual([]);
    await expectAsAnswered(harness, answered);
    expect((await harness.agent.status()).outbox.dead).toBe(1);
  },
);

const movements = [-2, -1, 1, 2] as const;

test.concurrent(
  'every counter operation × every fault of the upstream, with other writers: the error never exceeds the operations marked as uncertain',
  async () => {
    await using harness = await harnessWithCells({ sync: { ...oneByOne.sync, writers: 'many' } });
    const { upstream, agent } = harness;
    const counters = cells.filter(({ kind }) => kind === 'usage' || kind === 'decrease');
    const met = corrupt(harness, ({ subject }, times) => {
      const index = counters.findIndex((cell) => cell.subject === subject);
      if (index !== -1) upstream.useElsewhere(subject, movements[(index + times) % movements.length] ?? 0);
    });
    const answered = await askForAll(agent);
    await agent.atRest();
    expect(counters.filter(({ subject }) => !met.has(subject)).map(nameOf)).toEqual([]);
    const labelled = [...(await agent.operations('inferred')), ...(await agent.operations('uncertain'))];
    const beyond = counters.filter(({ kind, subject }) => {
      const told = (answered.get(subject) ?? 0) * (kind === 'usage' ? 1 : -1);
      const error = Math.abs(upstream.countsOf(subject).net - told);
      const doubts = labelled.filter(({ license_key: key }) => key === subject).length;
      return error > doubts;
    });
    expect(beyond.map(nameOf)).toEqual([]);
  },
);
