import type { Principal } from '../../../domain/access/principal.ts';
import type { ParameterFault } from '../../../domain/problem/problem.ts';
import type { Cart } from '../../../domain/checkout/quote.ts';
import { cartFaults } from '../../../service/checkout.ts';
import { ok, provenanceHeaders } from '../../response.ts';
import type { App } from '../../app.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import { cartBytes, cartParameters, serializeQuote, quoteObject } from '../../../wire/checkout.ts';

/** The faults of a cart that only the catalogue can tell. */
export async function catalogueFaults(
  { role, reader }: App,
  { tenant }: Principal,
  { cart }: { cart?: Cart },
): Promise<readonly ParameterFault[]> {
  // An agent has no catalogue: it takes the products as the cart names them.
  if (role === 'agent' || cart === undefined) return [];
  return await cartFaults(reader, tenant.accountId, cart.lines);
}

/** Quotes (src/http/README.md, Coupons at checkout). */
export const quoteRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/agent/v1/quote',
    operationId: 'quoteCoupon',
    tag: 'Checkout',
    summary: 'Ask whether a coupon can be redeemed for a cart, and what it takes off',
    headers: ['provenance'],
    refusals: ['product_archived'],
    access: { credential: 'api_key', scope: 'coupons:read' },
    body: cartParameters,
    bodyBytes: cartBytes,
    readsOnly: true,
    answers: { 200: enveloped(quoteObject) },
    faults: catalogueFaults,
    async handle({ app, principal, body: { cart }, signal }) {
      const quoted = await app.checkout.quote(principal.tenant.accountId, cart, signal);
      if (!quoted.ok) return quoted;
      const { quote, provenance } = quoted.value;
      return ok(serializeQuote(quote, app.role), provenanceHeaders(provenance));
    },
  }),
];
