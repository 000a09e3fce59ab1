import type { FastifyReply, FastifyRequest } from 'fastify';
import { ProblemError } from './problem-error.ts';
import type { Route } from './route.ts';

/** What a request is refused with whose path, or method, no route has. */
export function unknownRoute(
  routes: readonly Route[],
  { method, url }: FastifyRequest,
  reply: FastifyReply,
): ProblemError {
  const path = pathOf(url);
  const written = routes.filter((route) => route.path === path);
  const found = written.length > 0 ? written : routes.filter((route) => matches(route.path, path));
  const allowed = found.map((route) => route.method);
  if (allowed.length === 0) return new ProblemError('route_not_found', 'There is nothing at this path.');
  reply.header('Allow', allowed.flatMap((each) => (each === 'GET' ? ['GET', 'HEAD'] : [each])).join(', '));
  return new ProblemError('method_not_allowed', `${method} is not allowed here.`);
}

/** Whether a path that one route names was taken for the parameter of another, which alone has the method. */
export function isShadowed(routes: readonly Route[], { routeOptions, url }: FastifyRequest): boolean {
  if (routeOptions.url?.includes(':') !== true) return false;
  const path = pathOf(url);
  // Its own, written with the parameter's name, shadows none.
  return path !== routeOptions.url && routes.some((route) => route.path === path);
}

function matches(pattern: string, path: string): boolean {
  const parts = path.split('/');
  const expected = pattern.split('/');
  return (
    parts.length === expected.length &&
    expected.every((part, index) => part.startsWith(':') || part === parts[index])
  );
}

/** The path of a target as the router reads it: without a query, doubled slashes and a slash at its end. */
export function pathOf(target: string): string {
  const [path = ''] = target.split('?', 1);
  const single = path.replaceAll(/\/{2,}/g, '/');
  return single.length > 1 && single.endsWith('/') ? single.slice(0, -1) : single;
}
