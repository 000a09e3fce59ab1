import { z } from 'zod';
import { bare } from './answer.ts';
import type { Readiness } from './desk.ts';
import { route, type Route } from './route.ts';
import {
  healthObject,
  presentStatus,
  readinessQuery,
  statusObject,
  type HealthObject,
} from './wire/health.ts';

const healthAnswers = { 200: healthObject, 503: healthObject };

const live = route({
  method: 'GET',
  path: '/livez',
  summary: 'Whether the process works; if not, restart it',
  access: 'anyone',
  always: true,
  answers: healthAnswers,
  handle({ desk }) {
    const readiness = desk.readiness();
    return health(readiness.state === 'storage_failed' ? reasonsOf(readiness) : []);
  },
});

const ready = route({
  method: 'GET',
  path: '/readyz',
  summary: 'Whether requests are taken; with require=fresh, also whether the upstream answers',
  access: 'anyone',
  always: true,
  query: readinessQuery,
  answers: healthAnswers,
  handle({ desk, query }) {
    const readiness = desk.readiness();
    if (readiness.state !== 'ready') return health(reasonsOf(readiness));
    const upstream = query.require === 'fresh' ? desk.status().upstream : null;
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
  handle: ({ desk }) => bare(200, presentStatus(desk.status())),
});

const openApi = route({
  method: 'GET',
  path: '/openapi.json',
  summary: 'This description',
  access: 'anyone',
  answers: { 200: z.looseObject({}) },
  async handle({ desk, routes }) {
    // Loaded when first asked for: the generator is no part of a start.
    const { describeRoutes } = await import('./openapi.ts');
    return bare(200, describeRoutes(routes, desk.version));
  },
});

/** For probes, people and generators (contract section 5). */
export const healthRoutes: readonly Route[] = [live, ready, status, openApi];
