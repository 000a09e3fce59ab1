import type { Configuration, UpstreamSettings } from '../config/configuration.ts';
import type { TlsSettings } from '../config/file/tls-files.ts';
import type { DialectName } from '../domain/dialect.ts';
import { apiKeyHeaders } from '../domain/header-names.ts';
import type { ConnectionSettings } from '../upstream/connections.ts';
import { dialects } from '../upstream/dialects/all.ts';
import type { PlainUpstreamSettings } from '../upstream/plain-upstream.ts';
import { readFiles } from './certificate.ts';
import { version } from '../config/version.ts';

/** How the configured upstream is connected to; `ca`: the content of `upstream.ca_file`. */
export function connectionSettings(
  { baseUrl, timeoutMs, proxy, connectTo }: UpstreamSettings,
  { tls }: Pick<Configuration['listen'], 'tls'>,
  { ca, maxConnections }: Pick<ConnectionSettings, 'ca' | 'maxConnections'>,
): ConnectionSettings {
  const own = tls === null ? null : certificateIn(tls);
  return { baseUrl, timeoutMs, ca, own, proxy: proxy?.reveal() ?? null, connectTo, maxConnections };
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
