import { z } from 'zod';
import { done } from '../../domain/problem.ts';
import { bare } from '../answer.ts';
import type { App, Readiness } from '../app.ts';
import { route, type Route } from '../route.ts';
import {
  healthObject,
  presentStatus,
  readinessQuery,
  statusObject,
  type HealthObject,
} from '../wire/health.ts';

const healthAnswers = { 200: healthObject, 503: healthObject };

const live = route({
  method: 'GET',
  path: '/livez',
  summary: 'Whether the process works; if not, restart it',
  access: 'anyone',
  always: true,
  answers: healthAnswers,
  handle: ({ app }) => health(app.liveness()),
});

const ready = route({
  method: 'GET',
  path: '/readyz',
  summary: 'Whether requests are taken; with require=fresh, also whether the upstream answers',
  access: 'anyone',
  always: true,
  query: readinessQuery,
  answers: healthAnswers,
  handle({ app, query }) {
    const readiness = app.readiness();
    if (readiness.state !== 'ready') return health(reasonsOf(readiness));
    const upstream = query.require === 'fresh' ? app.status().upstream : null;
    return health(upstream === null || upstream.state === 'up' ? [] : [`upstream_${upstream.state}`]);
  },
});

function reasonsOf({ state, reasons }: Readiness): readonly string[] {
  return reasons.length > 0 ? reasons : [state];
}

function health(reasons: readonly string[]): ReturnType<typeof bare> {
  const body: HealthObject = { status: reasons.length === 0 ? 'ok' : 'unavailable', reasons };
  return bare(reasons.length === 0 ? 200 : 503, body);
}

const status = route({
  method: 'GET',
  path: '/statusz',
  summary: 'How this process, its upstream, its outbox and its records stand',
  access: { credential: 'any', scope: 'ops' },
  answers: { 200: statusObject },
  handle: ({ app }) => bare(200, presentStatus(app.status())),
});

const metrics = route({
  method: 'GET',
  path: '/metrics',
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

async function describe({ version }: App, routes: readonly Route[]): Promise<string> {
  // Loaded on first use: the generator would slow every start.
  const { describeRoutes } = await import('../openapi.ts');
  return JSON.stringify(describeRoutes(routes, version));
}

const openApi = route({
  method: 'GET',
  path: '/openapi.json',
  summary: 'This description',
  access: 'anyone',
  answers: { 200: z.looseObject({}) },
  async handle({ app, routes }) {
    const text = descriptions.get(app) ?? (await describe(app, routes));
    descriptions.set(app, text);
    return done({ status: 200, headers: { 'Content-Type': 'application/json' }, body: text });
  },
});

/** Probes, status, metrics and OpenAPI (src/http/README.md, Health and status). */
export const healthRoutes: readonly Route[] = [live, ready, status, metrics, openApi];
