import { bare } from '../response.ts';
import { route, type Route } from '../route.ts';
import { serializeStatus, statusObject } from '../../wire/status.ts';

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

/** Status (src/http/README.md, Health and status). */
export const statusRoutes: readonly Route[] = [status];
