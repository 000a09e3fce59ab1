import type { Awaitable, RecordedAuditEntry } from '../../../service/tables.ts';
import type { App } from '../../app.ts';
import type { Principal, Scope } from '../../../domain/access/principal.ts';
import { withNext } from '../../../domain/page.ts';
import { type ParameterFault, failWith } from '../../../domain/problem/problem.ts';
import { ok, created, pageOf } from '../../response.ts';
import { route, type Route } from '../../route.ts';
import {
  accountList,
  accountObject,
  accountParameters,
  serializeAccount,
  serializeAccountKey,
  oldSecretUntil,
  rotateParameters,
  serializeToken,
  serializeTokenSecret,
  tokenList,
  tokenObject,
  tokenParameters,
  auditEntryList,
  auditEntryObject,
  auditEntryQuery,
  serializeAuditEntry,
  type AuditEntryObject,
} from '../../../wire/access.ts';
import { enveloped } from '../../../wire/response.ts';
import { pageQuery } from '../../../wire/page.ts';
import { tenantFilter, foreignAccountFaults, accessibleAccount, productFaults } from '../../tenant.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const roles = ['authority'] as const;
const answersSecret = true;

/** Accounts of an authority (src/http/README.md, Admin routes). */
export const accountRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/accounts',
    operationId: 'addAccount',
    tag: 'Accounts',
    summary: 'Add an account',
    access,
    roles,
    operatorOnly: true,
    answersSecret,
    body: accountParameters,
    answers: { 201: enveloped(accountObject) },
    async handle({ app, body, writeOptions }) {
      const { name, apiKey = null } = body;
      const added = await app.writer.write('addAccount', { name, apiKey }, writeOptions);
      return added.ok ? created(serializeAccountKey(added.value)) : added;
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/accounts',
    operationId: 'listAccounts',
    tag: 'Accounts',
    summary: 'List accounts',
    access,
    roles,
    query: pageQuery('accounts'),
    answers: { 200: enveloped(accountList) },
    async handle({ app: { lists }, principal, query, sentTo }) {
      const filter = tenantFilter(principal);
      const rows = await lists.accounts.list(filter, withNext(query));
      const total = await lists.accounts.count(filter);
      const read = pageOf(
        { list: 'accounts', rows, total, keyOf: ({ accountId }) => [accountId] },
        query,
        sentTo,
      );
      return ok({ accounts: read.items.map(serializeAccount) }, read.headers);
    },
  }),
  route({
    method: 'POST',
    path: '/admin/v1/accounts/:id/rotate-key',
    operationId: 'rotateApiKey',
    tag: 'Accounts',
    summary: 'Give an account a new API key',
    access,
    roles,
    owned: 'account',
    answersSecret,
    body: rotateParameters,
    answers: { 200: enveloped(accountObject) },
    async handle({ app, path: { id }, body, writeOptions }) {
      const oldUntil = oldSecretUntil(body, app.verifiedNow());
      const rotated = await app.writer.write('rotateApiKey', { accountId: id, oldUntil }, writeOptions);
      if (!rotated.ok) return rotated;
      app.saveApiKey(id, rotated.value.apiKey);
      return ok(serializeAccountKey(rotated.value));
    },
  }),
];

/** `ops` applies to the whole process, so an account's credential cannot grant it. */
function scopeFaults({ isOperator }: Principal, requested: readonly Scope[] = []): ParameterFault[] {
  if (isOperator || !requested.includes('ops')) return [];
  const detail = 'A credential of one account cannot give the scope ops.';
  return [{ parameter: 'scopes', code: 'excluded', detail }];
}

const issueToken = route({
  method: 'POST',
  path: '/admin/v1/tokens',
  operationId: 'issueToken',
  tag: 'Tokens',
  summary: 'Issue a token, which is shown only this once',
  access,
  answersSecret,
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

const listTokens = route({
  method: 'GET',
  path: '/admin/v1/tokens',
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

const revokeToken = route({
  method: 'DELETE',
  path: '/admin/v1/tokens/:id',
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

const rotateToken = route({
  method: 'POST',
  path: '/admin/v1/tokens/:id/rotate',
  operationId: 'rotateToken',
  tag: 'Tokens',
  summary: 'Give a token another secret, which is shown only this once; the old one stops at once, or later',
  refusals: ['token_not_found', 'token_of_the_file'],
  access,
  answersSecret: true,
  body: rotateParameters,
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
export const tokenRoutes: readonly Route[] = [issueToken, listTokens, rotateToken, revokeToken];

/** The record of people's acts (src/http/README.md, Audit log). */
export const auditRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/admin/v1/audit',
    operationId: 'listActs',
    tag: 'Audit',
    summary: 'List acts on record, the latest first',
    access,
    operatorOnly: true,
    query: auditEntryQuery,
    answers: { 200: enveloped(auditEntryList) },
    async handle({ app, query, sentTo }) {
      const { lists } = app;
      const rows = await lists.audit.list(query, withNext(query));
      const total = await lists.audit.count(query);
      const read = pageOf({ list: 'acts', rows, total, keyOf: ({ at, id }) => [at, id] }, query, sentTo);
      return ok({ acts: await Promise.all(read.items.map((entry) => named(app, entry))) }, read.headers);
    },
  }),
  route({
    method: 'GET',
    path: '/admin/v1/audit/:id',
    operationId: 'getAct',
    tag: 'Audit',
    summary: 'Show an act on record',
    refusals: ['act_not_found'],
    access,
    operatorOnly: true,
    answers: { 200: enveloped(auditEntryObject) },
    async handle({ app, path: { id } }) {
      const act = /^\d{1,15}$/.test(id) ? await app.reader.audit.get(Number(id)) : null;
      if (act === null) return failWith('act_not_found', 'There is no act with this number on record.');
      return ok(await named(app, act));
    },
  }),
];

async function named(
  { reader, products, productName }: App,
  entry: RecordedAuditEntry,
): Promise<AuditEntryObject> {
  const { subject } = entry;
  const names: Readonly<Record<string, () => Awaitable<string | null | undefined>>> = {
    account: async () => (await reader.accounts.get(subject))?.name,
    product: () => productName(products?.idOf(subject) ?? subject),
    purchase: async () => {
      const purchase = await reader.purchases.get(subject);
      return purchase && (await reader.licenses.get(purchase.licenseKey))?.buyerEmail;
    },
    token: async () => (await reader.tokens.get(subject))?.label,
  };
  const [kind = ''] = entry.act.split('.', 1);
  return serializeAuditEntry({ ...entry, subjectName: (await names[kind]?.()) ?? undefined });
}
