import { z } from 'zod';
import { done } from '../../domain/problem/problem.ts';
import { route, type Route } from '../route.ts';

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

/** Metrics (src/http/README.md, Health and status). */
export const metricsRoutes: readonly Route[] = [metrics];
