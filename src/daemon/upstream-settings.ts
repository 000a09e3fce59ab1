import type { Configuration, UpstreamSettings } from '../config/configuration.ts';
import type { TlsSettings } from '../config/file/tls-files.ts';
import type { DialectName } from '../domain/dialect.ts';
import { apiKeyHeaders } from '../domain/header-names.ts';
import type { ConnectionSettings } from '../upstream/connections.ts';
import { dialects } from '../upstream/dialects.ts';
import { chooseProxy, type ProxyChoice } from '../upstream/proxy.ts';
import type { PlainUpstreamSettings } from '../upstream/plain-upstream.ts';
import { readFiles } from './certificate.ts';
import { trustSystemAnd } from './system/trust.ts';
import { version } from '../config/version.ts';

/** How the configured upstream is connected to; `ca`: the certificates of `upstream.ca_file`. */
export function connectionSettings(
  upstream: UpstreamSettings,
  { tls }: Pick<Configuration['listen'], 'tls'>,
  { ca, maxConnections }: Pick<ConnectionSettings, 'maxConnections'> & { ca: string | null },
): ConnectionSettings {
  // A request that comes back to its sender must get the answer that says so (src/sync/README.md, What a response
  // proves), although nobody here may trust the authority that signed the certificate of the listener.
  const own = tls === null ? null : certificateIn(tls);
  const trust = trustSystemAnd(...[ca, own].filter((each) => each !== null));
  const { baseUrl, timeoutMs, connectTo } = upstream;
  return { baseUrl, timeoutMs, trust, proxy: () => proxyTo(upstream), connectTo, maxConnections };
}

/** The proxy to the configured upstream; null: none is used. */
export function proxyTo(upstream: UpstreamSettings): ProxyChoice | null {
  return chooseProxy({ ...upstream, proxy: upstream.proxy?.reveal() ?? null }, process.env);
}

/** The certificate that the TCP listener shows, without those behind it; null where the files cannot be used. */
function certificateIn(tls: TlsSettings): string | null {
  const read = readFiles(tls);
  return read.ok ? read.identity.leaf.toString() : null;
}

/** How the configured upstream is spoken to, in its own dialect unless another one is to be tried. */
export function speechSettings(
  { headers, userAgent, ...upstream }: UpstreamSettings,
  dialect: DialectName = upstream.dialect,
): Pick<PlainUpstreamSettings, 'headers' | 'dialect' | 'userAgent'> {
  return {
    dialect: dialects[dialect],
    headers: { ...headers, apiKey: headers.apiKey ?? apiKeyHeaders[dialect] },
    userAgent: userAgent ?? `latchkey/${version}`,
  };
}
