import { hash, randomBytes, randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Standing } from '../../src/daemon/gauges.ts';
import type { App, HttpLimits, ServerSettings } from '../../src/http/app.ts';
import { dialects } from '../../src/http/dialects/all.ts';
import { Rates } from '../../src/http/entry/request-rates.ts';
import { buildServer } from '../../src/http/server.ts';
import { Backups } from '../../src/daemon/backups.ts';
import { authorityCouponing, authorityLicensing } from '../../src/service/authority/answers.ts';
import { authorityCheckout } from '../../src/service/authority/checkout.ts';
import { authorityCredentials } from '../../src/service/access/credential.ts';
import { isRefusal } from '../../src/service/access/idempotency.ts';
import { TokenUses } from '../../src/service/access/token-use.ts';
import type { Log, WriterContext } from '../../src/service/ports.ts';
import { readStanding } from '../../src/service/outbox/standing.ts';
import type { Status } from '../../src/service/status.ts';
import type { Transaction } from '../../src/service/tables.ts';
import { runUseCase } from '../../src/service/run.ts';
import { backUp } from '../../src/store/sqlite/files/backup.ts';
import { openReading, openWriting } from '../../src/store/sqlite/connection.ts';
import { localWriter } from '../../src/store/sqlite/local-writer.ts';
import { openStore } from '../../src/store/sqlite/files/open.ts';
import { VirtualTime } from './virtual-clock.ts';
import { temporaryDirectory } from './temporary.ts';

export const adminToken = 'lk_tok_admin';
export const apiKey = 'lk_api_default';

export type LogLine = { level: keyof Log; message: string } & Record<string, unknown>;

/** An authority's app over a real store, with the catalogue's credentials above; `log` keeps its lines. */
export interface TestApp extends AsyncDisposable {
  readonly app: App;
  readonly lines: LogLine[];
  /** Uses of tokens that are not stored yet. */
  readonly tokenUses: TokenUses;
  /** The state directory. */
  readonly directory: string;
  /** Writes past the interface, for what it cannot make yet. */
  readonly transaction: Transaction;
  /** What is on record, in order: who, what, on what, and the rest. */
  record(): readonly string[];
}

export async function openApp(changes: Partial<App> = {}): Promise<TestApp> {
  const opened = new AsyncDisposableStack();
  const directory = opened.use(temporaryDirectory());
  const store = opened.use(openStore({ directory: directory.path }));
  const writing = opened.use(openWriting(store.databasePath));
  const { reader } = opened.use(openReading(store.databasePath));
  const context = (): WriterContext => ({
    now: Date.now(),
    steady: Date.now(),
    random: {
      bytes: (count) => randomBytes(count),
      uuid: () => randomUUID(),
      draw: () => 0.5,
    },
    digest,
    keepsHistory: true,
  });
  const writer = localWriter(writing, { run: runUseCase, isRefusal, context });
  seed(writing.transaction);
  const backups = new Backups(
    directory.path,
    async (path) => backUp(store.databasePath, path),
    new VirtualTime().clock(),
    new AbortController().signal,
  );
  const lines: LogLine[] = [];
  const tokenUses = new TokenUses();
  const app: App = {
    role: 'authority',
    version: '0.0.0',
    instance: authorityStatus.instance,
    dialect: dialects.specification,
    licensing: authorityLicensing(reader, writer),
    couponing: authorityCouponing(reader, writer),
    checkout: authorityCheckout(reader, writer, { now: () => Date.now() }),
    reader,
    operations: changes.role === 'agent' ? reader.operations : null,
    standingOf: (operation) => readStanding(reader, operation, { obstacle: null, steady: Date.now() }),
    writer,
    memory: null,
    sync: null,
    backup: (signal) => backups.make(signal),
    credentials: authorityCredentials({ reader, digest, believedNow: () => Date.now(), uses: tokenUses }),
    rates: new Rates(
      () => ({ rate: 0, misses: 20, failedRate: 1_000_000 }),
      () => 0,
    ),
    configuredProducts: () => null,
    productName: (productKey) => reader.products.get(productKey)?.name ?? null,
    digest,
    log: keepLines(lines),
    inFlight: new Set(),
    now: () => Date.now(),
    believedNow: () => Date.now(),
    keepApiKey: () => undefined,
    status: () => authorityStatus,
    readiness: () => ({ state: 'ready', reasons: [] }),
    liveness: () => [],
    metrics: silentMetrics,
    ...changes,
  };
  return {
    app,
    lines,
    tokenUses,
    directory: directory.path,
    transaction: writing.transaction,
    record: () =>
      writing.database
        .prepare('SELECT * FROM audit ORDER BY id')
        .all()
        .map(({ actor, act, subject, detail }) => [actor, act, subject, detail].join(' | ')),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Metrics that count nothing. */
export const silentMetrics: App['metrics'] = {
  isOpen: () => false,
  expose: async () => 'latchkey_info 1\n',
  begin: () => 0,
  countAnswer: () => {},
  countUnrouted: () => {},
};

/** What a first start makes. */
function seed({ accounts, tokens }: Transaction): void {
  accounts.add({ accountId: 'default', name: 'default', createdAt: 0 }, digest(apiKey));
  const nothing = { productKey: null, accountId: null, label: null, lastUsedAt: null, expiresAt: null };
  tokens.add({ tokenId: 'admin', scopes: ['admin'], createdAt: 0, ...nothing }, digest(adminToken));
}

function digest(secret: string): string {
  return hash('sha256', secret, 'hex');
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
  listeners: { tcp: 'http://127.0.0.1:8787', socket: null, tls: null },
  upstream: null,
  outbox: null,
  preload: null,
  storage: 'ok',
  records: { fresh: 0, stale: 0, grace: 0, expired: 0, disabled: 0 },
  clock: {
    now: Date.parse('2026-02-22T11:24:00Z'),
    suspect: false,
    highWater: Date.parse('2026-02-22T11:23:05Z'),
  },
  totals: { verifies: 3, uses: 2 },
};

export const limits: HttpLimits = {
  headerTimeoutMs: 5_000,
  headerCount: 40,
  headerBytes: 8_192,
  requestTimeoutMs: 10_000,
  bodyBytes: 16_384,
  parameters: 32,
  connections: 256,
};

export const tcpSettings: ServerSettings = {
  listener: 'tcp',
  headerAliases: { apiKey: [], productSecret: [] },
  allowedHosts: [],
  allowedOrigins: [],
  unknown: 'problem',
  limits,
  tls: null,
  principal: null,
};

/** A server that is asked by `inject()`. */
export function serverOf(app: App, settings: Partial<ServerSettings> = {}): FastifyInstance {
  return buildServer(app, { ...tcpSettings, ...settings });
}

/** What a scrape finds on an authority at rest. */
export const authorityStanding: Standing = {
  status: authorityStatus,
  freeBytes: 1_000_000,
  productKeys: [],
};
