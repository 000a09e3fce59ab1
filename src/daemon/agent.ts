import { readFileSync } from 'node:fs';
import { agentCouponing } from '../service/agent-couponing.ts';
import { agentLicensing } from '../service/agent-licensing.ts';
import { agentCredentials } from '../service/credentials.ts';
import { CouponSync } from '../sync/coupon-sync.ts';
import { KeyLanes } from '../sync/key-lanes.ts';
import { probe } from '../sync/probe.ts';
import { LicenseReads } from '../sync/pull.ts';
import { Push } from '../sync/push.ts';
import { refresh } from '../sync/refresh.ts';
import { Uplink } from '../sync/uplink.ts';
import { Wake } from '../sync/wake.ts';
import { plainUpstream } from '../upstream/plain-upstream.ts';
import type { Current } from './current.ts';
import { sha256, systemRandom } from './random.ts';
import type { Role, RoleParts } from './role.ts';

/** Builds the agent: its client of the upstream, the loops that carry the outbox, and what answers callers. */
export function agentRole(parts: RoleParts): Role {
  const { current, reader, writer, clock, log } = parts;
  const upstream = connect(parts);
  const lanes = new KeyLanes();
  const probeWake = new Wake(clock);
  const policy = (): ReturnType<Current['policy']> => current.policy();
  const uplink = new Uplink({
    clock,
    log,
    lifetime: parts.lifetime,
    settings: () => current.configuration.sync,
    onChange: () => {
      probeWake.up();
      push.wake();
    },
    onRecovery: () => {
      // A failure here is one of the store, which the loops meet themselves.
      writer.write('endOutage', {}).then(
        () => {
          push.wake();
        },
        () => undefined,
      );
    },
  });
  const shared = { reader, writer, upstream, clock, log, lanes, uplink, policy, lifetime: parts.lifetime };
  const reads = new LicenseReads({
    ...shared,
    unknownMs: () => current.configuration.freshness.unknownMs,
    onRead: () => {
      push.wake();
    },
  });
  const coupons = new CouponSync(shared);
  const push = new Push({
    ...shared,
    reads,
    coupons,
    settings: () => ({ lanes: current.configuration.sync.lanes, policy: policy() }),
  });
  const productKeys = (): readonly string[] => current.productKeys();
  return {
    licensing: agentLicensing({
      ...shared,
      pull: reads,
      deliveries: push,
      productKeys,
      settings: () => current.licensing(),
    }),
    couponing: agentCouponing({
      ...shared,
      pull: coupons,
      isConfigured: () => current.upstream.apiKey !== null,
      settings: () => current.couponing(),
    }),
    credentials: agentCredentials(reader, sha256, () => current.credentials()),
    upstream: {
      status: () => uplink.status(),
      resume: () => {
        uplink.resume();
      },
    },
    async run(signal) {
      await using _upstream = upstream;
      const { freshness } = current.configuration;
      await Promise.all([
        push.run(signal),
        probe(
          { ...shared, reads, wake: probeWake, productKeys, probeMs: () => current.upstream.probeMs },
          signal,
        ),
        refresh({ ...shared, reads, draw: () => systemRandom.draw(), settings: () => freshness }, signal),
      ]);
    },
  };
}

function connect({ current, clock }: RoleParts): ReturnType<typeof plainUpstream> {
  const { baseUrl, headers, timeoutMs, caFile, proxy } = current.upstream;
  return plainUpstream(
    {
      baseUrl,
      headers,
      timeoutMs,
      ca: caFile === null ? null : readFileSync(caFile, 'utf8'),
      proxy: proxy?.reveal() ?? null,
      maxConnections: current.configuration.sync.lanes * 2 + 2,
      apiKey: () => current.upstream.apiKey?.reveal() ?? null,
      secretOf: (productKey) => current.secretOf(productKey),
      onDate: (date) => {
        clock.learn(date);
      },
    },
    clock,
  );
}
