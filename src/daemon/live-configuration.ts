import type { z } from 'zod';
import {
  type Configuration,
  type UpstreamSettings,
  sectionsOfRole,
  settings,
} from '../config/configuration.ts';
import type { Tree } from '../config/file/tree.ts';
import type { ConfigurationSource } from '../config/load.ts';
import { keysOf, metaOf } from '../config/section.ts';
import type { SettingMeta } from '../config/setting-types.ts';
import { defaultLeaseTerms, type LeaseTerms } from '../domain/catalogue.ts';
import { noProducts, type ConfiguredProduct, type ProductList } from '../domain/agent/product.ts';
import type { UpstreamCredentials } from '../service/access/credential.ts';
import { AgentProducts } from '../service/agent/products.ts';
import type { AgentSettings } from '../service/services.ts';
import type { SyncPolicy } from '../service/outbox/queue.ts';
import type { SyncOptions } from '../sync/options.ts';
import { sha256 } from './system/machine.ts';

/** The settings that took effect, and the settings that take effect after a restart. */
export type Reloaded = { changed: readonly string[]; restart: readonly string[] };

/** The current configuration, in the shapes that its users need. SIGHUP replaces it. */
export class LiveConfiguration {
  /** The products of an agent. */
  readonly products: AgentProducts;
  /** Where the configuration was last read from; null: the program that embeds the daemon gave it. */
  source: ConfigurationSource | null = null;
  #configuration: Configuration;
  #credentials: UpstreamCredentials;
  /** Cached, because loops and services read them several times per request. */
  #sync: SyncOptions | null = null;
  #agent: AgentSettings | null = null;

  /** `stored`: the products in the store of an agent. */
  constructor(configuration: Configuration, stored: ProductList = noProducts) {
    this.#configuration = configuration;
    this.products = new AgentProducts(stored, configuredProducts(configuration));
    this.#credentials = this.#digestCredentials();
  }

  get configuration(): Configuration {
    return this.#configuration;
  }

  replace(configuration: Configuration): void {
    this.#configuration = configuration;
    this.products.configure(configuredProducts(configuration));
    this.#credentials = this.#digestCredentials();
    this.#sync = null;
    this.#agent = null;
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

  readonly productIds = (): readonly string[] => this.products.configured.map(({ id }) => id);

  secretOf(productId: string): string | null {
    return this.#settingsOf(productId)?.secret?.reveal() ?? null;
  }

  productName(productId: string): string | null {
    return this.#settingsOf(productId)?.name ?? null;
  }

  /** The lease settings of a product of an agent that issues leases. */
  leaseTermsOf(productId: string): LeaseTerms {
    const settingsOfProduct = this.#settingsOf(productId);
    if (settingsOfProduct === undefined) return defaultLeaseTerms;
    const { seats, holdMs, termMs, refreshMs, leaseEmail: showsEmail } = settingsOfProduct;
    return { seats, holdMs, termMs, refreshMs, showsEmail };
  }

  #settingsOf(productId: string): Configuration['products'][number] | undefined {
    const product = this.products.configured.find(({ id }) => id === productId);
    return this.#configuration.products.find(({ key }) => key === product?.productKey);
  }

  /** The same object until the configuration changes. */
  sync(): SyncOptions {
    return (this.#sync ??= this.#syncOptions());
  }

  #syncOptions(): SyncOptions {
    const { sync, freshness, limits } = this.#configuration;
    const { rate, concurrency, breaker } = sync;
    const { unknownMs } = freshness;
    const { probeMs, apiKey } = this.upstream;
    return {
      rate,
      concurrency,
      breaker,
      unknownMs,
      lookups: { perSecond: limits.misses, maxWaiting: Math.ceil(limits.connections / 2) },
      probeMs,
      policy: this.#policy(),
      productIds: this.productIds(),
      productKeyOf: (id) => this.products.keyOf(id),
      hasApiKey: apiKey !== null,
    };
  }

  #policy(): SyncPolicy {
    const { sync, freshness } = this.#configuration;
    const { reconcileAfterMs, writers, onUncertain, backoff } = sync;
    const { goneMs, refreshMs, graceMs } = freshness;
    return { reconcileAfterMs, writers, onUncertain, backoff, goneMs, refreshMs, graceMs };
  }

  /** The same object until the configuration changes. */
  readonly agentSettings = (): AgentSettings => (this.#agent ??= this.#agentSettings());

  #agentSettings(): AgentSettings {
    const { sync, freshness } = this.#configuration;
    const { refreshMs, unknownMs } = freshness;
    const { timeoutMs } = this.upstream;
    return { freshness, refreshMs, unknownMs, maxPending: sync.maxPending, timeoutMs };
  }

  #digestCredentials(): UpstreamCredentials {
    const apiKey = this.#configuration.upstream?.apiKey ?? null;
    return {
      apiKeyDigest: apiKey === null ? null : sha256(apiKey.reveal()),
      products: this.products.configured,
    };
  }
}

/** Some stores have no secret of a product. No header can carry what has this digest. */
function configuredProducts({ products, upstream }: Configuration): ConfiguredProduct[] {
  return products.flatMap(({ key, secret }) => {
    if (secret !== null) return [{ productKey: key, secretDigest: sha256(secret.reveal()) }];
    return upstream === null ? [] : [{ productKey: key, secretDigest: sha256(`\0${key}`) }];
  });
}

type Reload = NonNullable<SettingMeta['reload']>;

/**
 * The configuration of a running process after a reload: settings marked `applies` have the new values, all others
 * keep theirs until a restart. The role stays as well.
 */
export function reloadedConfiguration(running: Configuration, requested: Configuration): Configuration {
  const { role } = running;
  const kept = sectionsOfRole.map((name) => [name, running[name as keyof Configuration]]);
  const ofThisRole =
    requested.role === role ? requested : { ...requested, ...(Object.fromEntries(kept) as object) };
  const values = reloadPart(settings, 'applies', { running, requested: ofThisRole });
  return { ...(values as Configuration), role };
}

function reloadPart(
  type: z.ZodType,
  inherited: Reload,
  { running, requested }: { running: unknown; requested: unknown },
): unknown {
  const { reload = inherited } = metaOf(type);
  const keys = keysOf(type);
  if (keys === null || running === null || requested === null)
    return reload === 'applies' ? requested : running;
  return Object.fromEntries(
    keys.map(({ name, type: each }) => {
      const values = { running: (running as Tree)[name], requested: (requested as Tree)[name] };
      return [name, reloadPart(each, reload, values)];
    }),
  );
}
