import type { UpstreamCredentials } from '../service/access/credential.ts';
import type { SyncPolicy } from '../service/outbox/policy.ts';
import type { AgentCheckoutParts } from '../service/agent/checkout.ts';
import type { AgentCouponingParts } from '../service/agent/coupon.ts';
import type { AgentLicensingParts } from '../service/agent/license-lookup.ts';
import type { Configuration, UpstreamSettings } from '../config/configuration.ts';
import type { SyncOptions } from '../sync/sync.ts';
import { sha256 } from './system/random.ts';

/** The configuration in force, in the shapes that the parts ask for; SIGHUP puts another in its place. */
export class LiveConfiguration {
  #configuration: Configuration;
  #credentials: UpstreamCredentials;
  /** The loops ask for it several times a request. */
  #sync: SyncOptions | null = null;

  constructor(configuration: Configuration) {
    this.#configuration = configuration;
    this.#credentials = digestCredentials(configuration);
  }

  get configuration(): Configuration {
    return this.#configuration;
  }

  replace(configuration: Configuration): void {
    this.#configuration = configuration;
    this.#credentials = digestCredentials(configuration);
    this.#sync = null;
  }

  /** The upstream's own part; throws on an authority, which has none. */
  get upstream(): UpstreamSettings {
    const { upstream } = this.#configuration;
    if (upstream === null) throw new Error('an authority has no upstream');
    return upstream;
  }

  credentials(): UpstreamCredentials {
    return this.#credentials;
  }

  productKeys(): readonly string[] {
    return this.#configuration.products.map(({ key }) => key);
  }

  secretOf(productKey: string): string | null {
    return this.#configuration.products.find(({ key }) => key === productKey)?.secret.reveal() ?? null;
  }

  productName(productKey: string): string | null {
    return this.#configuration.products.find(({ key }) => key === productKey)?.name ?? null;
  }

  /** The same object until the configuration changes. */
  sync(): SyncOptions {
    return (this.#sync ??= this.#syncOptions());
  }

  #syncOptions(): SyncOptions {
    const { sync, freshness } = this.#configuration;
    const { rate, lanes, breaker } = sync;
    const { unknownMs } = freshness;
    const { probeMs, apiKey } = this.upstream;
    return {
      rate,
      lanes,
      breaker,
      unknownMs,
      probeMs,
      policy: this.#policy(),
      productKeys: this.productKeys(),
      hasApiKey: apiKey !== null,
    };
  }

  #policy(): SyncPolicy {
    const { sync, freshness } = this.#configuration;
    const { fenceMs, writers, onDoubt, backoff } = sync;
    const { goneMs, refreshMs, graceMs } = freshness;
    return { fenceMs, writers, onDoubt, backoff, goneMs, refreshMs, graceMs };
  }

  licensing(): ReturnType<AgentLicensingParts['settings']> {
    const { sync, freshness } = this.#configuration;
    return {
      freshness,
      refreshMs: freshness.refreshMs,
      maxPending: sync.maxPending,
      timeoutMs: this.upstream.timeoutMs,
    };
  }

  couponing(): ReturnType<AgentCouponingParts['settings']> {
    const { sync, freshness } = this.#configuration;
    return { freshness, maxPending: sync.maxPending };
  }

  checkout(): ReturnType<AgentCheckoutParts['settings']> {
    const { freshness } = this.#configuration;
    return { freshness, unknownMs: freshness.unknownMs };
  }
}

function digestCredentials({ upstream, products }: Configuration): UpstreamCredentials {
  const apiKey = upstream?.apiKey ?? null;
  return {
    apiKeyDigest: apiKey === null ? null : sha256(apiKey.reveal()),
    products: products.map(({ key, secret }) => ({ productKey: key, secretDigest: sha256(secret.reveal()) })),
  };
}
