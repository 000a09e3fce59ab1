import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { defaultFreshnessPolicy } from '../../../src/domain/agent/license-snapshot.ts';
import { noProducts } from '../../../src/domain/agent/product.ts';
import type { ProcessSnapshot } from '../../../src/daemon/gauges.ts';
import type { App, CoreApp, HttpLimits, ServerSettings } from '../../../src/http/app.ts';
import { dialects } from '../stores/dialects.ts';
import { AnnouncedCredentialCache, rateLimiters } from '../../../src/http/entry/rate-limits.ts';
import type { Route } from '../../../src/http/route.ts';
import type { WebPage } from '../../../src/http/web-page.ts';
import { buildServer } from '../../../src/http/server.ts';
import { longReadOn } from '../../../src/daemon/long-read.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { AgentProducts } from '../../../src/service/agent/products.ts';
import {
  authorityCouponService,
  authorityLicenseService,
  authorityCheckoutService,
} from '../../../src/service/authority/services.ts';
import { authorityCredentials, TokenUses } from '../../../src/service/access/credential.ts';
import { Announcer } from '../../../src/service/writer.ts';
import type { Log } from '../../../src/service/ports.ts';
import { explainOperation } from '../../../src/service/outbox/decision.ts';
import type { Status } from '../../../src/service/status.ts';
import type { AuthorityTransaction, Transaction } from '../../../src/service/tables.ts';
import { proofOf } from '../../../src/wire/proof.ts';
import { digest, openAppStore, type AppStore } from './app-store.ts';
import { temporaryDirectory } from '../temporary.ts';
import { buildToken } from '../builders/store-builders.ts';

export const adminToken = 'lk_tok_admin';
export const apiKey = 'lk_api_default';
export const asAdmin = { authorization: `Bearer ${adminToken}` };

export type LogLine = { level: keyof Log; message: string } & Record<string, unknown>;

/** An authority's app over a real store with the seeded credentials; `lines` has its log. */
export interface TestApp extends AsyncDisposable {
  readonly app: App;
  readonly lines: LogLine[];
  /** Uses of tokens that are not yet stored. */
  readonly tokenUses: TokenUses;
  /** The state directory. */
  readonly directory: string;
  readonly write: AppStore['write'];
  /** Sends a request. `path`: under `/admin/v1/`, unless it begins with `/`. `headers`: default: an admin token. */
  send: (
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    payload?: object,
    headers?: object,
  ) => Promise<LightMyRequestResponse>;
  /** All tables of an agent, for writes that the API does not offer. */
  agentTables(): Transaction;
  /** The audit entries, in order: user, action, object, and the rest. */
  record(): Promise<readonly string[]>;
}

const ofFeatures = join(import.meta.dirname, '../../features');
/** What features add to the app. */
const partsOfFeatures = await Promise.all(
  globSync('*/app-part.ts', { cwd: ofFeatures }).map(
    (file) => import(join(ofFeatures, file)) as Promise<{ appPart: (app: CoreApp) => Partial<App> }>,
  ),
);

/** `onCall` gets the name of each call of a table and of each write. */
export async function openApp(
  changes: Partial<App> = {},
  onCall: ((name: string) => void) | null = null,
): Promise<TestApp> {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory()).path;
  const { role = 'authority' } = changes;
  const store = opened.use(await openAppStore(role, directory));
  const { backup, local } = store;
  const { reader, writer } = onCall === null ? store : watched(store, onCall);
  await store.write(seed);
  const lines: LogLine[] = [];
  const tokenUses = new TokenUses();
  const announcer = new Announcer();
  const credentials = authorityCredentials({ reader, verifiedNow: () => Date.now(), uses: tokenUses });
  const core: CoreApp = {
    role,
    version: '0.0.0',
    instance: authorityStatus.instance,
    epoch: () => (role === 'authority' ? reader.settings.epoch() : null),
    foreignStore: null,
    dialect: dialects.specification,
    licenseService: authorityLicenseService(reader, writer, { now: () => Date.now() }),
    couponService: authorityCouponService(reader, writer),
    checkout: authorityCheckoutService(reader, writer, { now: () => Date.now() }),
    reader,
    lists: reader,
    longRead: longReadOn(reader),
    operations: role === 'agent' ? (local?.reader.operations ?? null) : null,
    storedLicenses:
      role === 'agent' && local !== null
        ? {
            ...local.reader.snapshots,
            freshness: () => defaultFreshnessPolicy,
            dateOf: (monotonic) => monotonic,
            seatsOf: () => 3,
          }
        : null,
    explain: (operation) =>
      explainOperation(localOf(store).reader, operation, { blocker: null, monotonic: Date.now() }),
    writer,
    changes: announcer,
    cachesResponses: false,
    licenseCredential: null,
    sync: null,
    backup,
    credentials:
      changes.cachesResponses === true
        ? new AnnouncedCredentialCache(announcer).cached(credentials)
        : credentials,
    rates: rateLimiters(
      () => ({ rate: 0, failedRate: 1_000_000 }),
      () => 0,
    ),
    products: null,
    productName: async (productKey) => (await reader.products.get(productKey))?.name ?? null,
    digest,
    log: keepLines(lines),
    inFlight: new Set(),
    now: () => Date.now(),
    verifiedNow: () => Date.now(),
    historySince: () => 0,
    saveApiKey: () => undefined,
    prove: (nonce, address) => proofOf(adminToken, { nonce, instance: authorityStatus.instance, address }),
    control: null,
    status: () => authorityStatus,
    readiness: () => ({ state: 'ready', reasons: [] }),
    liveness: () => [],
    metrics: silentMetrics,
  };
  const parts = partsOfFeatures.map(({ appPart }) => appPart({ ...core, ...changes }));
  const app = Object.assign({}, core, ...parts, changes) as App;
  let built: FastifyInstance | null = null;
  const server = (): FastifyInstance => (built ??= serverOf(app));
  return {
    async send(method, path, payload, headers = asAdmin) {
      const url = path.startsWith('/') ? path : `/admin/v1/${path}`;
      return await server().inject({ method, url, headers: { ...headers }, ...(payload && { payload }) });
    },
    app,
    lines,
    tokenUses,
    directory,
    agentTables: () => localOf(store).transaction,
    write: (work) => store.write(work),
    async record() {
      const acts = await reader.audit.list({}, { limit: 1_000, offset: 0 });
      return acts
        .toReversed()
        .map(({ actor, act, subject, detail }) => [actor, act, subject, detail].join(' | '));
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The tables and the writer of a store, which report each call. */
function watched(
  { reader, writer }: AppStore,
  onCall: (name: string) => void,
): Pick<AppStore, 'reader' | 'writer'> {
  const watch = <Value extends object>(object: Value, path: string): Value =>
    new Proxy(object, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property);
        const name = `${path}.${String(property)}`;
        if (typeof value === 'object' && value !== null) return watch(value, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          onCall(name === 'writer.write' ? `write ${String(args[0])}` : name);
          return Reflect.apply(value, target, args);
        };
      },
    });
  return { reader: watch(reader, 'reader'), writer: watch(writer, 'writer') };
}

/** The code of the problem of an answer. */
export function codeOf(answer: LightMyRequestResponse): string {
  return answer.json<{ code: string }>().code;
}

export async function dataOf<Data>(
  answer: LightMyRequestResponse | Promise<LightMyRequestResponse>,
): Promise<Data> {
  return (await answer).json<{ data: Data }>().data;
}

/** The configured products of an agent. */
export function productsOf(...productKeys: readonly string[]): AgentProducts {
  const configured = productKeys.map((productKey) => ({
    productKey,
    secretDigest: `digest of ${productKey}`,
  }));
  return new AgentProducts(noProducts, configured);
}

/** Metrics that do nothing. */
export const silentMetrics: App['metrics'] = {
  isOpen: () => false,
  expose: async () => 'latchkey_info 1\n',
  begin: () => 0,
  countResponse: () => {},
  countUnrouted: () => {},
  countVerify: () => {},
  countUse: () => {},
};

/** The data that a first start creates. */
async function seed({ accounts, tokens }: AuthorityTransaction): Promise<void> {
  await accounts.add({ accountId: 'default', name: 'default', createdAt: 0 }, digest(apiKey));
  await tokens.add(buildToken({ tokenId: 'admin', createdAt: 0 }), digest(adminToken));
}

function localOf({ local }: AppStore): NonNullable<AppStore['local']> {
  if (local === null) throw new Error('only an agent has these tables');
  return local;
}

function keepLines(lines: LogLine[]): Log {
  const keep = (level: keyof Log) => (fields: Record<string, unknown>, message: string) => {
    lines.push({ ...fields, level, message });
  };
  return { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };
}

export const authorityStatus: Status = {
  role: 'authority',
  version: '0.0.0',
  instance: 'b7f0e6f2-1111-7222-8333-444455556666',
  uptimeMs: 61_900,
  listeners: {
    tcp: 'http://127.0.0.1:8787',
    otherTcp: [],
    socket: null,
    sockets: [],
    lost: [],
    public: null,
    tls: null,
  },
  upstream: null,
  outbox: null,
  preload: null,
  missing: null,
  agents: null,
  storeEvents: null,
  leases: null,
  issuer: null,
  storage: 'ok',
  records: { fresh: 0, stale: 0, grace: 0, expired: 0, disabled: 0 },
  clock: {
    now: Date.parse('2026-02-22T11:24:00Z'),
    suspect: false,
    storeAheadMs: null,
    highWater: Date.parse('2026-02-22T11:23:05Z'),
  },
  webhooks: null,
  totals: { verifies: 3, uses: 2 },
};

export const limits: HttpLimits = {
  headerTimeoutMs: 250_000,
  headerCount: 40,
  headerBytes: 8_192,
  requestTimeoutMs: 250_000,
  bodyBytes: 16_384,
  parameters: 32,
  connections: 256,
};

const tcpSettings: ServerSettings = {
  listener: 'tcp',
  headerAliases: { apiKey: [], productSecret: [] },
  allowedHosts: [],
  allowedOrigins: [],
  unknown: 'problem',
  limits,
  tls: null,
  principal: null,
};

const routesByDialect = new Map(
  await Promise.all(
    Object.values(dialects).map(async (dialect) => [dialect, await routesOf(dialect)] as const),
  ),
);

/** A server for `inject()`. */
export function serverOf(
  app: App,
  settings: Partial<ServerSettings> = {},
  pages: readonly WebPage[] = [],
  more: readonly Route[] = [],
): FastifyInstance {
  const routes = [...more, ...(routesByDialect.get(app.dialect) ?? [])];
  return buildServer({ ...app, routes, pages }, { ...tcpSettings, ...settings });
}

/** The metrics of an idle authority. */
export const authoritySnapshot: ProcessSnapshot = {
  status: authorityStatus,
  freeBytes: 1_000_000,
  productKeys: [],
};
