import { readFileSync } from 'node:fs';
import { agentCouponing } from '../service/agent-couponing.ts';
import { agentLicensing } from '../service/agent-licensing.ts';
import { agentCredentials } from '../service/credentials.ts';
import type { Upstream } from '../service/ports.ts';
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
  const { current, reader } = parts;
  const upstream = connect(parts);
  const sync = new Sync(parts, upstream);
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
    credentials: agentCredentials(reader, sha256, () => current.credentials()),
    upstream: sync.uplink,
    async run(signal) {
      await using _ = upstream;
      await sync.run(signal);
    },
  };
}

/** The loops of an agent and what they share. */
class Sync {
  readonly uplink: Uplink;
  readonly reads: LicenseReads;
  readonly coupons: CouponSync;
  readonly push: Push;
  readonly #parts: RoleParts & { upstream: Upstream; lanes: KeyLanes };
  readonly #probeWake: Wake;

  constructor(roleParts: RoleParts, upstream: Upstream) {
    const parts = { ...roleParts, upstream, lanes: new KeyLanes() };
    const { current, clock } = parts;
    const policy = (): ReturnType<Current['policy']> => current.policy();
    this.#parts = parts;
    this.#probeWake = new Wake(clock);
    this.uplink = new Uplink({
      ...parts,
      settings: () => current.configuration.sync,
      onChange: () => {
        this.#wake();
      },
      onRecovery: () => {
        void this.#recover();
      },
    });
    const shared = { ...parts, uplink: this.uplink, policy };
    this.reads = new LicenseReads({
      ...shared,
      unknownMs: () => current.configuration.freshness.unknownMs,
      onRead: () => {
        this.push.wake();
      },
    });
    this.coupons = new CouponSync(shared);
    this.push = new Push({
      ...shared,
      reads: this.reads,
      coupons: this.coupons,
      settings: () => ({ lanes: current.configuration.sync.lanes, policy: policy() }),
    });
  }

  /** Runs until the signal; rejects when the store failed. */
  async run(signal: AbortSignal): Promise<void> {
    const { current } = this.#parts;
    const shared = { ...this.#parts, uplink: this.uplink, reads: this.reads };
    await Promise.all([
      this.push.run(signal),
      probe(
        {
          ...shared,
          wake: this.#probeWake,
          productKeys: () => current.productKeys(),
          probeMs: () => current.upstream.probeMs,
        },
        signal,
      ),
      refresh(
        {
          ...shared,
          draw: () => systemRandom.draw(),
          settings: () => current.configuration.freshness,
        },
        signal,
      ),
    ]);
  }

  async #recover(): Promise<void> {
    // A fault here is one of the store, which the loops meet themselves.
    await this.#parts.writer.write('endOutage', {}).catch(() => undefined);
    this.#wake();
  }

  #wake(): void {
    this.push.wake();
    this.#probeWake.up();
  }
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
