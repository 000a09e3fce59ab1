import { withNext } from '../../../domain/page.ts';
import { ok, created, pageOf } from '../../response.ts';
import { tenantFilter } from '../../entry/admission.ts';
import { route, type Route } from '../../route.ts';
import {
  accountList,
  accountObject,
  accountParameters,
  serializeAccount,
  serializeAccountKey,
  oldSecretUntil,
  rollParameters,
} from '../../../wire/account.ts';
import { enveloped } from '../../../wire/response.ts';
import { pageQuery } from '../../../wire/page.ts';

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
    path: '/admin/v1/accounts/:id/roll-key',
    operationId: 'rollApiKey',
    tag: 'Accounts',
    summary: 'Give an account a new API key',
    access,
    roles,
    owned: 'account',
    answersSecret,
    body: rollParameters,
    answers: { 200: enveloped(accountObject) },
    async handle({ app, path: { id }, body, writeOptions }) {
      const oldUntil = oldSecretUntil(body, app.verifiedNow());
      const rolled = await app.writer.write('rollApiKey', { accountId: id, oldUntil }, writeOptions);
      if (!rolled.ok) return rolled;
      app.saveApiKey(id, rolled.value.apiKey);
      return ok(serializeAccountKey(rolled.value));
    },
  }),
];
