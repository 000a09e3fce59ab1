import { formatAddress } from './address.ts';
import type { Configuration, ListenSettings, UpstreamSettings } from './configuration.ts';
import { mask, type Secret } from './secret.ts';
import type { Tree } from './tree.ts';
import { formatDuration, formatSize } from './unit.ts';

/**
 * Writes a configuration in the file's own names and notation, every key, secrets as `***`.
 *
 * Read again, it gives the same configuration, secrets apart.
 */
export function effective(configuration: Configuration): Tree {
  const { stateDir, listen, upstream, products, freshness, sync, limits, metrics, log } = configuration;
  return {
    state_dir: stateDir,
    listen: showListen(listen),
    upstream: upstream === null ? null : showUpstream(upstream),
    products: products.map(({ key }) => ({ key, secret: mask })),
    freshness: {
      fresh: formatDuration(freshness.freshMs),
      stale: formatDuration(freshness.staleMs),
      grace: formatDuration(freshness.graceMs),
      refresh: formatDuration(freshness.refreshMs),
      unknown: formatDuration(freshness.unknownMs),
      gone: formatDuration(freshness.goneMs),
    },
    sync: {
      rate: sync.rate,
      lanes: sync.lanes,
      fence: formatDuration(sync.fenceMs),
      writers: sync.writers,
      on_doubt: sync.onDoubt,
      max_pending: sync.maxPending,
      backoff: { first: formatDuration(sync.backoff.firstMs), max: formatDuration(sync.backoff.maxMs) },
      breaker: { failures: sync.breaker.failures, open: formatDuration(sync.breaker.openMs) },
    },
    limits: {
      header_timeout: formatDuration(limits.headerTimeoutMs),
      header_count: limits.headerCount,
      header_bytes: formatSize(limits.headerBytes),
      request_timeout: formatDuration(limits.requestTimeoutMs),
      body_bytes: formatSize(limits.bodyBytes),
      import_bytes: formatSize(limits.importBytes),
      parameters: limits.parameters,
      connections: limits.connections,
      rate: limits.rate,
      misses: limits.misses,
      failed_rate: limits.failedRate,
    },
    metrics: { ...metrics },
    log: { ...log },
  };
}

function showListen(listen: ListenSettings): Tree {
  return {
    tcp: listen.tcp === null ? false : formatAddress(listen.tcp),
    socket: listen.socket ?? false,
    socket_mode: showMode(listen.socketMode),
    sockets: listen.sockets.map((socket) => ({ ...socket, mode: showMode(socket.mode) })),
    header_aliases: {
      api_key: listen.headerAliases.apiKey,
      product_secret: listen.headerAliases.productSecret,
    },
    allow_remote: listen.allowRemote,
    allowed_hosts: listen.allowedHosts,
  };
}

function showUpstream(upstream: UpstreamSettings): Tree {
  return {
    base_url: upstream.baseUrl,
    api_key: upstream.apiKey === null ? null : mask,
    headers: { api_key: upstream.headers.apiKey, product_secret: upstream.headers.productSecret },
    timeout: formatDuration(upstream.timeoutMs),
    probe: formatDuration(upstream.probeMs),
    ca_file: upstream.caFile,
    proxy: upstream.proxy === null ? null : showProxy(upstream.proxy),
  };
}

function showProxy(proxy: Secret): string {
  const url = new URL(proxy.reveal());
  if (url.username !== '') url.username = mask;
  if (url.password !== '') url.password = mask;
  return url.href;
}

function showMode(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}
