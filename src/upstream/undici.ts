import type * as undici from 'undici';
// Only these files, not the index of undici: its fetch, WebSocket, caches and mocks would take 10 MiB. They have no types.
// @ts-expect-error
import api from 'undici/lib/api/index.js';
// @ts-expect-error
import connectModule from 'undici/lib/core/connect.js';
// @ts-expect-error
import dispatcherModule from 'undici/lib/dispatcher/dispatcher.js';
// @ts-expect-error
import agentModule from 'undici/lib/dispatcher/env-http-proxy-agent.js';
// @ts-expect-error
import poolModule from 'undici/lib/dispatcher/pool.js';

// As the index does: the agent for proxies calls `connect`.
Object.assign((dispatcherModule as typeof undici.Dispatcher).prototype, api);

export const buildConnector = connectModule as typeof undici.buildConnector;
export const EnvHttpProxyAgent = agentModule as typeof undici.EnvHttpProxyAgent;
export const Pool = poolModule as typeof undici.Pool;
