import { defaultAccountId, type Principal } from '../../../domain/access/principal.ts';
import { accessibleAccount, isUnknownProduct, tenantFilter } from '../../../http/tenant.ts';
import type { Activation } from '../domain/lease.ts';
import { licenseKeysIn } from '../../../domain/license.ts';
import { withNext } from '../../../domain/page.ts';
import { notFound } from '../../../domain/problem/problem.ts';
import type { ActivationFilter } from '../service/tables.ts';
import {
  activationList,
  activationObject,
  activationQuery,
  requestFileParameters,
  serializeActivation,
} from '../wire/activation.ts';
import { fileAnswerObject } from '../wire/lease.ts';
import { enveloped } from '../../../wire/response.ts';
import type { App } from '../../../http/app.ts';
import { emptyList, ok, pageOf } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';
import { inStoredSpelling, lengthOf, searchFor } from '../../../http/search.ts';
import { leaseRefusals, ofIssuer } from './lease.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const path = '/admin/v1/activations';

/** The only account whose activations a credential can access; null: all. All products of an agent have one account. */
function accountOf({ role }: App, principal: Principal): string | null {
  const account = accessibleAccount(principal);
  return role === 'agent' && account === defaultAccountId ? null : account;
}

const list = route({
  ...ofIssuer,
  method: 'GET',
  path,
  operationId: 'listActivations',
  summary: 'List the devices that have asked for seats',
  access,
  query: activationQuery,
  answers: { 200: enveloped(activationList) },
  async handle({ app, principal, query, searchedKeys, sentTo }) {
    const tenant = accountOf(app, principal) === null ? {} : tenantFilter(principal);
    const { hasSeat, ...filters } = searchFor(query, searchedKeys);
    const scoped = { ...filters, ...tenant, ...(hasSeat === 'true' && { seatAt: app.now() }) };
    if (await isUnknownProduct(app, scoped)) return emptyList('activations');
    const { filter, total: counted } = await (scoped.search === undefined
      ? inStoredKey(app, scoped)
      : inStoredSpelling(scoped, (each) => app.lists.activations.count(each)));
    const total = lengthOf(filter, counted);
    const rows = await app.lists.activations.list(filter, withNext(query));
    const keyOf = ({ activationId }: Activation): [string] => [activationId];
    const read = pageOf({ list: 'activations', rows, total, keyOf }, query, sentTo);
    const now = app.now();
    return ok({ activations: read.items.map((each) => serializeActivation(each, now)) }, read.headers);
  },
});

/** Filters by the spelling of a license key that has activations: as sent, or else as it was before it was pasted. */
async function inStoredKey(
  { lists }: App,
  filter: ActivationFilter,
): Promise<{ filter: ActivationFilter; total: number }> {
  const total = await lists.activations.count(filter);
  if (total > 0 || filter.licenseKey === undefined) return { filter, total };
  for (const licenseKey of licenseKeysIn(filter.licenseKey)) {
    const found = { ...filter, licenseKey };
    const foundTotal = await lists.activations.count(found);
    if (foundTotal > 0) return { filter: found, total: foundTotal };
  }
  return { filter, total };
}

const show = route({
  ...ofIssuer,
  method: 'GET',
  path: `${path}/:id`,
  operationId: 'getActivation',
  summary: 'Show a device that has asked for a seat',
  refusals: ['activation_not_found'],
  access,
  answers: { 200: enveloped(activationObject) },
  async handle({ app, principal, path: { id } }) {
    const { activations, products } = app.reader;
    const activation = await activations.get(id);
    // The same reads for an unknown activation and for another account's.
    const product = await products.get(activation?.productKey ?? '');
    const account = accountOf(app, principal);
    const isHidden = account !== null && product?.accountId !== account;
    return activation === null || isHidden
      ? notFound('activation')
      : ok(serializeActivation(activation, app.now()));
  },
});

function changeRoute(
  change: 'end' | 'block',
  { operationId, summary }: { operationId: string; summary: string },
): Route {
  return route({
    ...ofIssuer,
    method: 'POST',
    path: `${path}/:id/${change}`,
    operationId,
    summary,
    refusals: ['activation_not_found'],
    access,
    answers: { 200: enveloped(activationObject) },
    async handle({ app, principal, path: { id: activationId }, writeOptions }) {
      const useCase = change === 'end' ? 'endActivation' : 'blockActivation';
      const command = { activationId, accountId: accountOf(app, principal) };
      const changed = await app.writer.write(useCase, command, writeOptions);
      return changed.ok ? ok(serializeActivation(changed.value, app.now())) : changed;
    },
  });
}

/** JSON can write each character of a document in several bytes. */
const maxFileBytes = 128 * 1024;

const sign = route({
  ...ofIssuer,
  method: 'POST',
  path: '/admin/v1/leases',
  operationId: 'signLease',
  summary: 'Answer a request of a machine without a network, which came as a file',
  refusals: leaseRefusals,
  access,
  bodyBytes: maxFileBytes,
  body: requestFileParameters,
  answers: { 200: enveloped(fileAnswerObject) },
  async handle({ app, principal, body: { request, until = null }, writeOptions }) {
    const options = { until, accountId: accountOf(app, principal) };
    const signed = await app.leaseIssuer.sign(request.trim(), options, writeOptions);
    return signed.ok ? ok(signed.value) : signed;
  },
});

/** The devices of customers, at an issuer (src/http/README.md, Leases). */
export const activationRoutes: readonly Route[] = [
  list,
  show,
  changeRoute('end', {
    operationId: 'endActivation',
    summary: 'Free the seat of a device, which may take a seat again',
  }),
  changeRoute('block', {
    operationId: 'blockActivation',
    summary: 'Free the seat of a device, and give it no lease of the license again',
  }),
  sign,
];
