import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Route } from '../../../../src/http/route.ts';
import { specification } from '../../../../src/http/dialects.ts';
import { routesOf } from '../../../../src/http/routes/all.ts';
import { fromPage, openConsole, origin, type ConsoleApp } from '../console-app.ts';

const routes = await routesOf(specification);

let app: ConsoleApp;
let readOnly: string;
let admin: string;
beforeAll(async () => {
  app = await openConsole();
  readOnly = await app.signIn();
  admin = await app.signIn(true);
});
afterAll(() => app[Symbol.asyncDispose]());

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** What only a session with admin may do, and what no session may do (src/http/README.md, The console). */
const changes =
  /^(?:POST|PUT|DELETE) |^GET \/(?:metrics$|admin\/v1\/(?:backup$|.*\/export$)|api\/v2\/license|sync\/v1$|agent\/v1\/(?:lease|activations))/;
const reads = /^(?:POST \/agent\/v1\/quote|DELETE \/console\/v1\/sessions)$/;
const letsOthersIn = /\/admin\/v1\/console\/sign-ins/;

function expected(name: string, isAdmin: boolean): string {
  if (letsOthersIn.test(name)) return `${name}: scope_missing`;
  const isOpen = isAdmin || reads.test(name) || !changes.test(name);
  return `${name}: ${isOpen ? 'open' : 'session_read_only'}`;
}

/** Whether a session may use a route, whatever the response of the route is. */
async function answer(route: Route, token: string): Promise<string> {
  const { method, path } = route;
  const got = await app.server.inject({
    method,
    url: path.replaceAll(/:\w+/g, 'nothing'),
    headers: { ...fromPage, origin, authorization: `Bearer ${token}` },
  });
  expect(got.statusCode).not.toBe(401);
  return `${nameOf(route)}: ${got.statusCode === 403 ? got.json<{ code: string }>().code : 'open'}`;
}

const protectedRoutes = routes.filter(({ access }) => access !== 'anyone');

async function answers(token: string): Promise<string[]> {
  const got: string[] = [];
  // The route that ends the session is the last one.
  const ordered = protectedRoutes.toSorted(
    (one, other) =>
      Number(one.path === '/console/v1/sessions') - Number(other.path === '/console/v1/sessions'),
  );
  for (const route of ordered) got.push(await answer(route, token));
  return got.toSorted();
}

test('a read-only session may use the routes that read, except backup and exports', async () => {
  const wanted = protectedRoutes.map((route) => expected(nameOf(route), false)).toSorted();
  expect(wanted.filter((line) => line.endsWith('open')).length).toBeGreaterThan(15);
  expect(await answers(readOnly)).toEqual(wanted);
});

test('a session that may change things may use every route but those that let other pages in', async () => {
  const wanted = protectedRoutes.map((route) => expected(nameOf(route), true)).toSorted();
  expect(await answers(admin)).toEqual(wanted);
});
