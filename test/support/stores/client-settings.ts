import { trustSystemAnd } from '../../../src/daemon/system/trust.ts';
import type { ConnectSettings } from '../../../src/stores/store.ts';
import type { ConnectionSettings } from '../../../src/upstream/connections.ts';

/** The settings of a store's client in a test. */
export function clientSettings(
  baseUrl: string,
  productKey: string,
  accessToken: string | null,
): ConnectionSettings & Omit<ConnectSettings, 'dialect'> {
  return {
    baseUrl,
    timeoutMs: 5_000,
    trust: trustSystemAnd(),
    proxy: () => null,
    connectTo: null,
    maxConnections: () => 4,
    userAgent: 'latchkey/test',
    self: 'me',
    productKeyOf: () => productKey,
    accessToken: () => accessToken,
  };
}
