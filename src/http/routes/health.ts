import { bare } from '../response.ts';
import type { Readiness } from '../app.ts';
import { route, type Route } from '../route.ts';
import { healthObject, readinessQuery, type HealthObject } from '../../wire/status.ts';

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

/** Probes (src/http/README.md, Health and status). */
export const healthRoutes: readonly Route[] = [live, ready];
