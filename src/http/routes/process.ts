import { z } from 'zod';
import { bare } from '../response.ts';
import type { Readiness, App } from '../app.ts';
import { route, type Route } from '../route.ts';
import {
  healthObject,
  readinessQuery,
  type HealthObject,
  serializeStatus,
  statusObject,
} from '../../wire/status.ts';
import { done } from '../../domain/problem/problem.ts';

const healthResponses = { 200: healthObject, 503: healthObject };

const live = route({
  method: 'GET',
  path: '/livez',
  operationId: 'getLiveness',
  tag: 'Server',
  summary: 'Whether the process works; if not, restart it',
  access: 'anyone',
  always: true,
  answers: healthResponses,
  handle({ app }) {
    const reasons = app.liveness();
    return health(reasons.length === 0 ? 200 : 503, reasons);
  },
});

const ready = route({
  method: 'GET',
  path: '/readyz',
  operationId: 'getReadiness',
  tag: 'Server',
  summary: 'Whether requests are taken; with require=fresh, also whether the upstream answers',
  access: 'anyone',
  always: true,
  query: readinessQuery,
  answers: healthResponses,
  async handle({ app, query }) {
    const readiness = app.readiness();
    if (readiness.state !== 'ready') return health(503, reasonsOf(readiness));
    const upstream = query.require === 'fresh' ? (await app.status()).upstream : null;
    if (upstream === null || upstream.state === 'up') return health(200, readiness.reasons);
    return health(503, [`upstream_${upstream.state}`]);
  },
});

function reasonsOf({ state, reasons }: Readiness): readonly string[] {
  return reasons.length > 0 ? reasons : [state];
}

function health(status: 200 | 503, reasons: readonly string[]): ReturnType<typeof bare> {
  const body: HealthObject = { status: status === 200 ? 'ok' : 'unavailable', reasons };
  return bare(status, body);
}

const status = route({
  method: 'GET',
  path: '/statusz',
  operationId: 'getStatus',
  tag: 'Server',
  summary: 'How this process, its upstream, its outbox and its records stand',
  access: { credential: 'any', scope: 'ops' },
  answers: { 200: statusObject },
  handle: async ({ app }) => bare(200, serializeStatus(await app.status())),
});

const metrics = route({
  method: 'GET',
  path: '/metrics',
  operationId: 'getMetrics',
  tag: 'Server',
  summary: 'What is measured, for Prometheus; open to anyone when metrics.open is set',
  access: { credential: 'any', scope: 'ops' },
  isOpen: (app) => app.metrics.isOpen(),
  answers: { 200: z.string() },
  async handle({ app }) {
    const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' };
    return done({ status: 200, headers, body: await app.metrics.expose() });
  },
});

const descriptions = new WeakMap<App, string>();

async function describe(app: App, routes: readonly Route[]): Promise<string> {
  // Loaded on first use: the generator would slow every start.
  const { describeRoutes } = await import('../openapi/document.ts');
  return JSON.stringify(describeRoutes(routes, app));
}

const openApi = route({
  method: 'GET',
  path: '/openapi.json',
  operationId: 'getOpenApi',
  tag: 'Server',
  summary: 'This description',
  access: 'anyone',
  answers: { 200: z.looseObject({}).meta({ id: 'OpenApi' }) },
  async handle({ app, routes }) {
    const text = descriptions.get(app) ?? (await describe(app, routes));
    descriptions.set(app, text);
    return done({ status: 200, headers: { 'Content-Type': 'application/json' }, body: text });
  },
});

const backup = route({
  method: 'GET',
  path: '/admin/v1/backup',
  operationId: 'downloadBackup',
  tag: 'Server',
  summary: 'A consistent copy of the store, one at a time',
  refusals: ['backup_running', 'backed_up_by_the_database'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  answers: { 200: z.file() },
  async handle({ app, signal }) {
    const made = await app.backup(signal);
    if (!made.ok) return made;
    const { sizeBytes, content } = made.value;
    const headers = { 'Content-Type': 'application/octet-stream', 'Content-Length': String(sizeBytes) };
    return done({ status: 200, headers, body: content });
  },
});

/** This process and its store (src/http/README.md, Health and status). */
export const processRoutes: readonly Route[] = [live, ready, status, metrics, openApi, backup];
