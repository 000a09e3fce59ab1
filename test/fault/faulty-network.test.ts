import { expect, test } from 'vitest';
import {
  eventually,
  hasty,
  startAgentHarness,
  tooLateMs,
  type AgentHarness,
} from '../support/harness/agent-harness.ts';
import type { NetworkFault } from '../support/network/fault-proxy.ts';

const faults: Readonly<Record<string, NetworkFault>> = {
  'the port is closed': { kind: 'refuse' },
  'all bytes are swallowed': { kind: 'blackhole' },
  'connections are reset at once': { kind: 'reset_on_connect' },
  'responses become resets': { kind: 'reset_answer' },
  'responses never arrive': { kind: 'half_open' },
  'responses end within their head': { kind: 'cut_answer', afterBytes: 20 },
  'responses end within their body': { kind: 'cut_answer', afterBytes: 240 },
  'everything arrives after the timeout': { kind: 'latency', delayMs: tooLateMs },
};

const operations = ['usage', 'decrease', 'disable', 'enable', 'create_coupon'] as const;
type OperationKind = (typeof operations)[number];

const moments = ['before', 'after'] as const;
/** When the network fails: before the request was sent, or after it has arrived. */
type Moment = (typeof moments)[number];

const usesBefore = 5;
const subjectOf = (kind: OperationKind, moment: Moment): string => `${kind}-${moment}`;

function harnessWithKeys(): Promise<AgentHarness> {
  const licenses = moments.flatMap((moment) =>
    operations.map((kind) => ({
      licenseKey: subjectOf(kind, moment),
      uses: usesBefore,
      enabled: kind !== 'enable',
    })),
  );
  return startAgentHarness({ licenses, configuration: hasty });
}

async function ask({ agent }: AgentHarness, kind: OperationKind, moment: Moment): Promise<void> {
  const subject = subjectOf(kind, moment);
  const { status } = await (kind === 'create_coupon'
    ? agent.createCoupon({ code: subject })
    : agent.change(kind, subject));
  expect(status).toBe(kind === 'create_coupon' ? 201 : 200);
}

/** Breaks the network, then starts all operations; each operation fails at least once. */
async function breakBefore(harness: AgentHarness, fault: NetworkFault): Promise<void> {
  await harness.proxy.become(fault);
  await Promise.all(operations.map((kind) => ask(harness, kind, 'before')));
  await eventually(async () => {
    const { upstream, outbox } = await harness.agent.status();
    return upstream.state === 'down' && outbox.pending + outbox.uncertain === operations.length;
  });
  await harness.proxy.become({ kind: 'pass' });
  await harness.agent.atRest();
}

/** Breaks the network as soon as the request of one operation has arrived. */
async function breakAfter(harness: AgentHarness, fault: NetworkFault): Promise<void> {
  const { upstream, proxy, agent } = harness;
  for (const kind of operations) {
    let arrivals = 0;
    upstream.fault = (request) => {
      if (request.kind !== kind) return undefined;
      arrivals += 1;
      if (arrivals === 1) void proxy.become(fault);
      return undefined;
    };
    await ask(harness, kind, 'after');
    await upstream.until(() => arrivals > 0);
    await eventually(async () => (await agent.operations('in_flight')).length === 0);
    await proxy.become({ kind: 'pass' });
    await agent.atRest();
  }
}

function upshot({ upstream }: AgentHarness, moment: Moment): object {
  const licenseOf = (kind: OperationKind): object => {
    const { uses, enabled } = upstream.license(subjectOf(kind, moment));
    return { uses, enabled };
  };
  const codes = upstream.coupons.map(({ code }) => code);
  return {
    usage: licenseOf('usage'),
    decrease: licenseOf('decrease'),
    disable: licenseOf('disable'),
    enable: licenseOf('enable'),
    coupons: codes.filter((code) => code === subjectOf('create_coupon', moment)).length,
  };
}

const asAnswered = {
  usage: { uses: usesBefore + 1, enabled: true },
  decrease: { uses: usesBefore - 1, enabled: true },
  disable: { uses: usesBefore, enabled: false },
  enable: { uses: usesBefore, enabled: true },
  coupons: 1,
};

for (const [circumstance, fault] of Object.entries(faults)) {
  test.concurrent(
    `each operation counts once when ${circumstance}, before or after its request arrived`,
    async () => {
      await using harness = await harnessWithKeys();
      await breakBefore(harness, fault);
      await breakAfter(harness, fault);
      expect({ before: upshot(harness, 'before'), after: upshot(harness, 'after') }).toEqual({
        before: asAnswered,
        after: asAnswered,
      });
      expect((await harness.agent.status()).outbox).toMatchObject({ inferred: 0, conflicted: 0, dead: 0 });
    },
  );
}
