import type { UpstreamSettings } from '../config/configuration.ts';
import type { DialectName } from '../domain/dialect.ts';
import { apiKeyHeaders } from '../domain/header-names.ts';
import type { ConnectionSettings } from '../upstream/connections.ts';
import { dialects } from '../upstream/dialects/all.ts';
import type { PlainUpstreamSettings } from '../upstream/plain-upstream.ts';
import { version } from './version.ts';

/** How the configured upstream is connected to; `ca`: the content of `upstream.ca_file`. */
export function connectionSettings(
  { baseUrl, timeoutMs, proxy, connectTo }: UpstreamSettings,
  { ca, maxConnections }: Pick<ConnectionSettings, 'ca' | 'maxConnections'>,
): ConnectionSettings {
  return { baseUrl, timeoutMs, ca, proxy: proxy?.reveal() ?? null, connectTo, maxConnections };
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
