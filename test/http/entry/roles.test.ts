import { expect, test } from 'vitest';
import type { RoleName } from '../../../src/domain/role.ts';
import { isOffered, refusalIn, refusalsElsewhere } from '../../../src/http/entry/admission.ts';
import { specification } from '../../../src/http/dialects.ts';
import { routesOf } from '../../../src/http/routes/all.ts';
import { adminToken, openApp, serverOf } from '../../support/app/http-app.ts';

const routes = await routesOf(specification);

const roles: readonly RoleName[] = ['authority', 'agent', 'holder'];

test.each(roles)(
  '%s: every route that this role does not offer is refused before its body is read',
  async (role) => {
    await using opened = await openApp({ role });
    const server = serverOf(opened.app);
    // Some routes have checks of their own before.
    const refused = routes.filter((route) => !isOffered(route, role) && route.check === undefined);
    expect(refused.length).toBeGreaterThan(0);
    for (const { method, path, ...route } of refused) {
      const { code, detail } = refusalIn(role, route).problem;
      const response = await server.inject({
        method,
        url: path.replaceAll(/:\w+/g, 'x'),
        headers: { authorization: `Bearer ${adminToken}` },
        ...(method !== 'GET' && { payload: '{' }),
      });
      expect([method, path, response.json()]).toMatchObject([method, path, { code, detail }]);
      expect(detail).not.toBe('');
      expect(refusalsElsewhere(route)).toContain(code);
    }
  },
);

test('a route without roles is offered by every role', () => {
  expect(roles.filter((role) => isOffered({}, role))).toEqual(roles);
  expect(refusalsElsewhere({})).toEqual([]);
});
