import type { ProblemCode } from '../../domain/problem/problem-table.ts';
import type { RoleName } from '../../domain/role.ts';
import { ProblemError } from '../problem-error.ts';
import type { Route } from '../route.ts';

type Offer = Pick<Route, 'roles' | 'elsewhere'>;

const everyRole: readonly RoleName[] = ['authority', 'agent', 'holder'];

/** What the usual refusals say. */
const details: Partial<Record<ProblemCode, string>> = {
  not_the_authority: 'Ask the upstream for this.',
  not_an_agent: 'Only an agent has an upstream to sync with.',
  not_a_holder: 'Only a holder has leases of its own: leases.issuer is not configured here.',
  not_offered_by_holder: 'A holder has leases of license keys, and nothing else of the store.',
};

/** Whether a role offers a route. */
export function isOffered({ roles = everyRole }: Offer, role: RoleName): boolean {
  return roles.includes(role);
}

/** The refusal of a route that a role does not offer. */
export function refusalIn(role: RoleName, route: Offer): ProblemError {
  const code = codeIn(role, route);
  return new ProblemError(code, route.elsewhere?.detail ?? details[code] ?? '');
}

/** The codes with which roles refuse a route that they do not offer. */
export function refusalsElsewhere(route: Offer): readonly ProblemCode[] {
  return everyRole.filter((role) => !isOffered(route, role)).map((role) => codeIn(role, route));
}

function codeIn(role: RoleName, { roles = [], elsewhere }: Offer): ProblemCode {
  if (elsewhere?.code !== undefined) return elsewhere.code;
  if (roles.join() === 'agent') return 'not_an_agent';
  if (roles.join() === 'holder') return 'not_a_holder';
  return role === 'holder' ? 'not_offered_by_holder' : 'not_the_authority';
}
