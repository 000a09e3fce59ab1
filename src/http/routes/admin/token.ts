import { withNext } from '../../../domain/page.ts';
import type { Principal, Scope } from '../../../domain/access/principal.ts';
import type { ParameterFault } from '../../../domain/problem/problem.ts';
import { ok, created, pageOf } from '../../response.ts';
import {
  foreignAccountFaults,
  accessibleAccount,
  productFaults,
  tenantFilter,
} from '../../entry/admission.ts';
import { route, type Route } from '../../route.ts';
import { enveloped } from '../../../wire/response.ts';
import { oldSecretUntil, rollParameters } from '../../../wire/account.ts';
import { pageQuery } from '../../../wire/page.ts';
import {
  serializeToken,
  serializeTokenSecret,
  tokenList,
  tokenObject,
  tokenParameters,
} from '../../../wire/token.ts';

/** `ops` applies to the whole process, so an account's credential cannot grant it. */
function scopeFaults({ isOperator }: Principal, requested: readonly Scope[] = []): ParameterFault[] {
  if (isOperator || !requested.includes('ops')) return [];
  const detail = 'A credential of one account cannot give the scope ops.';
  return [{ parameter: 'scopes', code: 'excluded', detail }];
}

const access = { credential: 'any', scope: 'admin' } as const;
const path = '/admin/v1/tokens';

const issue = route({
  method: 'POST',
  path,
  operationId: 'issueToken',
  tag: 'Tokens',
  summary: 'Issue a token, which is shown only this once',
  access,
  answersSecret: true,
  body: tokenParameters,
  answers: { 201: enveloped(tokenObject) },
  async faults(app, principal, { scopes, accountId, productKey }) {
    return [
      ...scopeFaults(principal, scopes),
      ...foreignAccountFaults(principal, accountId),
      ...(await productFaults(app, principal, productKey)),
    ];
  },
  async handle({ app, principal, body, writeOptions }) {
    const { scopes, productKey = null, label = null, expiresAt = null } = body;
    const accountId = body.accountId ?? accessibleAccount(principal);
    const { products, role } = app;
    const productId = productKey === null ? null : products?.idOf(productKey);
    const command = { scopes, productKey, productId, accountId, label, expiresAt, isAgent: role === 'agent' };
    const issued = await app.writer.write('issueToken', command, writeOptions);
    return issued.ok ? created(serializeTokenSecret(issued.value, products)) : issued;
  },
});

const list = route({
  method: 'GET',
  path,
  operationId: 'listTokens',
  tag: 'Tokens',
  summary: 'List tokens',
  access,
  query: pageQuery('tokens'),
  answers: { 200: enveloped(tokenList) },
  async handle({ app: { lists, products }, principal, query, sentTo }) {
    const filter = tenantFilter(principal);
    const rows = await lists.tokens.list(filter, withNext(query));
    const total = await lists.tokens.count(filter);
    const read = pageOf({ list: 'tokens', rows, total, keyOf: ({ tokenId }) => [tokenId] }, query, sentTo);
    return ok({ tokens: read.items.map((token) => serializeToken(token, products)) }, read.headers);
  },
});

const revoke = route({
  method: 'DELETE',
  path: `${path}/:id`,
  operationId: 'revokeToken',
  tag: 'Tokens',
  summary: 'Revoke a token, which stops at once',
  refusals: ['token_not_found', 'token_of_the_file'],
  access,
  answers: { 200: enveloped(tokenObject) },
  async handle({ app, principal, path: { id }, writeOptions }) {
    const { reader, products, writer } = app;
    const productId = products === null ? null : ((await reader.tokens.get(id))?.productKey ?? null);
    const product = productId === null ? {} : { productKey: products?.keyOf(productId) };
    // The use case looks at the owner, because a repeated request names a token that is gone.
    const command = { tokenId: id, accountId: accessibleAccount(principal), ...product };
    const revoked = await writer.write('revokeToken', command, writeOptions);
    return revoked.ok ? ok(serializeToken(revoked.value, products)) : revoked;
  },
});

const rotate = route({
  method: 'POST',
  path: `${path}/:id/rotate`,
  operationId: 'rotateToken',
  tag: 'Tokens',
  summary: 'Give a token another secret, which is shown only this once; the old one stops at once, or later',
  refusals: ['token_not_found', 'token_of_the_file'],
  access,
  answersSecret: true,
  body: rollParameters,
  answers: { 200: enveloped(tokenObject) },
  async handle({ app, principal, path: { id }, body, writeOptions }) {
    const command = {
      tokenId: id,
      accountId: accessibleAccount(principal),
      oldUntil: oldSecretUntil(body, app.verifiedNow()),
    };
    const rotated = await app.writer.write('rotateToken', command, writeOptions);
    return rotated.ok ? ok(serializeTokenSecret(rotated.value, app.products)) : rotated;
  },
});

/** Tokens (src/http/README.md, Credentials and scopes). */
export const tokenRoutes: readonly Route[] = [issue, list, rotate, revoke];
