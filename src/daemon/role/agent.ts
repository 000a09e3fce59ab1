import { readFileSync } from 'node:fs';
import { agentCouponing } from '../../service/agent/coupon.ts';
import { agentLicensing } from '../../service/agent/license.ts';
import { agentCredentials } from '../../service/access/credential.ts';
import { isPaused } from '../../service/outbox/pause.ts';
import { retryAfterUntil } from '../../service/outbox/retry-after.ts';
import { KeyLanes } from '../../sync/key-lanes.ts';
import { Sync } from '../../sync/sync.ts';
import { plainUpstream } from '../../upstream/plain-upstream.ts';
import { isSameDigest, sha256 } from '../system/random.ts';
import type { Role, RoleParts } from './role.ts';
import { syncControl } from './sync-control.ts';

/** Builds the agent: its client of the upstream, the loops that carry the outbox, and what answers callers. */
export function agentRole(parts: RoleParts): Role {
  const { current, reader } = parts;
  const upstream = connect(parts);
  const sync = new Sync({ ...parts, upstream, lanes: new KeyLanes(), settings: () => current.sync() });
  if (isPaused(reader)) sync.uplink.pause();
  sync.uplink.waitUntil(retryAfterUntil(reader));
  const productKeys = (): readonly string[] => current.productKeys();
  return {
    licensing: agentLicensing({
      ...parts,
      pull: sync.reads,
      deliveries: sync.push,
      productKeys,
      settings: () => current.licensing(),
    }),
    couponing: agentCouponing({
      ...parts,
      pull: sync.coupons,
      isConfigured: () => current.upstream.apiKey !== null,
      settings: () => current.couponing(),
    }),
    credentials: agentCredentials(reader, { digest: sha256, isSame: isSameDigest }, () =>
      current.credentials(),
    ),
    upstream: sync.uplink,
    sync: syncControl(parts, sync),
    async run(signal) {
      await using _ = upstream;
      await sync.run(signal);
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
