import { z } from 'zod';
import { done } from '../../domain/problem/problem.ts';
import type { App } from '../app.ts';
import { route, type Route } from '../route.ts';

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

/** The description of all routes, for generators (src/http/README.md, Health and status). */
export const openApiRoutes: readonly Route[] = [openApi];
