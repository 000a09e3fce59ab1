import { found, listHeaders, made } from '../answer.ts';
import { route, type Route } from '../route.ts';
import { enveloped } from '../wire/envelope.ts';
import { pageQuery } from '../wire/page.ts';
import { presentToken, presentTokenSecret, tokenList, tokenObject, tokenParameters } from '../wire/token.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const path = '/admin/v1/tokens';

const issue = route({
  method: 'POST',
  path,
  summary: 'Issue a token, which is shown only this once',
  access,
  answersSecret: true,
  body: tokenParameters,
  answers: { 201: enveloped(tokenObject) },
  async handle({ app, body, writeOptions }) {
    const { scopes, productKey = null, accountId = null, label = null } = body;
    const configuredProducts = app.configuredProducts();
    const command = { scopes, productKey, accountId, label, configuredProducts };
    const issued = await app.writer.write('issueToken', command, writeOptions);
    return issued.ok ? made(presentTokenSecret(issued.value)) : issued;
  },
});

const list = route({
  method: 'GET',
  path,
  summary: 'List tokens',
  access,
  query: pageQuery,
  answers: { 200: enveloped(tokenList) },
  async handle({ app: { reader }, query, sentTo }) {
    const tokens = await reader.tokens.list(query);
    const headers = listHeaders(await reader.tokens.count(), query, sentTo);
    return found({ tokens: tokens.map(presentToken) }, headers);
  },
});

const revoke = route({
  method: 'DELETE',
  path: `${path}/:id`,
  summary: 'Revoke a token, which stops at once',
  access,
  answers: { 200: enveloped(tokenObject) },
  async handle({ app, path: { id }, writeOptions }) {
    const revoked = await app.writer.write('revokeToken', { tokenId: id }, writeOptions);
    return revoked.ok ? found(presentToken(revoked.value)) : revoked;
  },
});

/** Tokens (src/http/README.md, Credentials and scopes). */
export const tokenRoutes: readonly Route[] = [issue, list, revoke];
