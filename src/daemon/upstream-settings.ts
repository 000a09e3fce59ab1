import type { Configuration, UpstreamSettings } from '../config/configuration.ts';
import type { TlsSettings } from '../config/file/certificates.ts';
import { type DialectName, apiKeyHeaders } from '../domain/header-names.ts';
import type { ConnectionSettings } from '../upstream/connections.ts';
import type { Dialect } from '../upstream/dialects.ts';
import { chooseProxy, type ProxyChoice } from '../upstream/proxy.ts';
import type { UpstreamClientSettings } from '../upstream/client.ts';
import type { ConnectSettings } from '../stores/store.ts';
import { readFiles } from './certificate.ts';
import type { LiveConfiguration } from './live-configuration.ts';
import { trustSystemAnd } from './system/trust.ts';
import { version } from '../config/version.ts';

/** The settings of connections to the upstream. `ca`: the certificates of `upstream.ca_file`. */
export function connectionSettings(
  upstream: UpstreamSettings,
  { tls }: Pick<Configuration['listen'], 'tls'>,
  { ca, maxConnections }: Pick<ConnectionSettings, 'maxConnections'> & { ca: string | null },
): ConnectionSettings {
  // A request that comes back to this agent must get a response that says so (src/sync/PLAIN-UPSTREAM.md, What a response
  // proves). Therefore the client trusts the certificate of the own listener.
  const own = tls === null ? null : certificateIn(tls);
  const trust = trustSystemAnd(...[ca, own].filter((each) => each !== null));
  const { baseUrl, timeoutMs, connectTo } = upstream;
  return { baseUrl, timeoutMs, trust, proxy: () => proxyTo(upstream), connectTo, maxConnections };
}

/** The settings of a store with an API of its own. */
export function storeSettings(
  current: LiveConfiguration,
): Pick<ConnectSettings, 'productKeyOf' | 'accessToken'> {
  return {
    productKeyOf: (productId) => current.products.keyOf(productId),
    accessToken: () => current.upstream.accessToken?.reveal() ?? null,
  };
}

/** The proxy to the configured upstream; null: none is used. */
export function proxyTo(upstream: UpstreamSettings): ProxyChoice | null {
  return chooseProxy({ ...upstream, proxy: upstream.proxy?.reveal() ?? null }, process.env);
}

/** The certificate of the TCP listener, without its chain; null if the files cannot be used. */
function certificateIn(tls: TlsSettings): string | null {
  const read = readFiles(tls);
  return read.ok ? read.identity.leaf.toString() : null;
}

/** The headers and the dialect of requests to the upstream. The doctor tries other dialects. */
export function speechSettings(
  { headers, userAgent }: UpstreamSettings,
  name: DialectName,
  dialect: Dialect,
): Pick<UpstreamClientSettings, 'headers' | 'dialect' | 'userAgent'> {
  return {
    dialect,
    headers: { ...headers, apiKey: headers.apiKey ?? apiKeyHeaders[name] },
    userAgent: userAgent ?? `latchkey/${version}`,
  };
}
