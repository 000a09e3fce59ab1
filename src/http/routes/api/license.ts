import type { Principal, Tenant, Scope } from '../../../domain/access/principal.ts';
import { type LicenseTrigger, describeMistake, parseLicenseKey } from '../../../domain/license.ts';
import { notFound, done, failWith, type Result } from '../../../domain/problem/problem.ts';
import type { ProblemCode } from '../../../domain/problem/problem-table.ts';
import { revisionHeader } from '../../../domain/header-names.ts';
import type { LicenseResponse } from '../../../service/services.ts';
import { afterCommit } from '../../../service/writer.ts';
import type { Awaitable } from '../../../service/tables.ts';
import { type RouteResponse, ok, provenanceHeaders } from '../../response.ts';
import type { App } from '../../app.ts';
import type { LicenseForm, ProductName } from '../../dialects.ts';
import { route, type Route, type RouteRequest } from '../../route.ts';
import { licenseParameters } from '../../../wire/license.ts';
import { enveloped } from '../../../wire/response.ts';
import { tenantForLicense } from '../../tenant.ts';

/** A license key with its tenant; null: the text cannot be a license key. */
export type LicenseTarget = { tenant: Tenant; licenseKey: string | null };

type FromCaller = Pick<
  RouteRequest<string, Principal, unknown, unknown>,
  'app' | 'principal' | 'connection' | 'writeOptions' | 'waitMs' | 'isAgent' | 'signal'
>;

/** The changes of a license, in every version of the interface. */
export const licenseChanges: readonly {
  trigger: Exclude<LicenseTrigger, 'refund'>;
  scope: Scope;
  operationId: string;
  summary: string;
}[] = [
  { trigger: 'disable', scope: 'manage', operationId: 'disableLicense', summary: 'Disable a license key' },
  { trigger: 'enable', scope: 'manage', operationId: 'enableLicense', summary: 'Enable a license key' },
  { trigger: 'usage', scope: 'use', operationId: 'recordUse', summary: 'Count a use' },
  { trigger: 'decrease', scope: 'use', operationId: 'undoUse', summary: 'Take a use back' },
];

/** Verifies a license key. */
export async function verifyLicense(
  { app, principal, connection, isAgent, signal }: FromCaller,
  { tenant, licenseKey }: LicenseTarget,
  form: LicenseForm,
): Promise<Result<RouteResponse>> {
  if (licenseKey === null) return notFound('license');
  if (principal.isOperator) app.licenseService.askAgain?.(licenseKey);
  const verified = await app.licenseService.verify(tenant, licenseKey, signal, {
    credential: principal.credential,
    connection,
  });
  if (verified.ok) app.metrics.countVerify(verified.value);
  const { role, productName, metrics } = app;
  return await present({ role, productName, metrics, isAgent }, explained(verified, licenseKey), form);
}

/** Changes a license. */
export async function changeLicense(
  { app, principal, connection, writeOptions, waitMs, isAgent, signal }: FromCaller,
  { tenant, licenseKey, trigger }: LicenseTarget & { trigger: Exclude<LicenseTrigger, 'refund'> },
  form: LicenseForm,
): Promise<Result<RouteResponse>> {
  if (licenseKey === null) return notFound('license');
  if (principal.isOperator) app.licenseService.askAgain?.(licenseKey);
  const requester = { credential: principal.credential, connection };
  const keyed = writeOptions.idempotency?.keyed ?? null;
  const request = { tenant, licenseKey, trigger, waitMs, isAgent, requester, keyed, ...writeOptions };
  const result = await app.licenseService.change(request, signal);
  if (result.ok && trigger === 'usage') app.metrics.countUse();
  // After a wait for the upstream, the result is in the store before the writer announces it.
  if (result.ok) app.changes.announce([{ licenseKey: result.value.license.licenseKey }]);
  const productName: ProductName = (productKey) =>
    afterCommit(app.log, () => app.productName(productKey), null);
  const presenting = { role: app.role, metrics: app.metrics, productName, isAgent, isKeyed: keyed !== null };
  return await present(presenting, explained(result, licenseKey), form);
}

/** `isAgent`: the caller is an agent. `isKeyed`: the request has the id of an operation. */
type Presenting = Pick<App, 'role' | 'productName' | 'metrics'> & { isAgent: boolean; isKeyed?: boolean };

async function present(
  app: Presenting,
  result: Result<LicenseResponse>,
  form: LicenseForm,
): Promise<Result<RouteResponse>> {
  return result.ok ? done(await responseOf(app, result.value, form)) : result;
}

/** Says what the text is instead, if a person has entered it in the wrong field. */
function explained<Value>(result: Result<Value>, licenseKey: string): Result<Value> {
  if (result.ok || result.problem.code !== 'license_not_found') return result;
  const mistaken = describeMistake(licenseKey);
  return mistaken === null
    ? result
    : failWith('license_not_found', `This is ${mistaken}, not a license key.`);
}

/** The response in the form of a dialect; synchronous if the form does not wait for the name of the product. */
function responseOf(app: Presenting, answer: LicenseResponse, form: LicenseForm): Awaitable<RouteResponse> {
  const { provenance, license, cacheable } = answer;
  let readsName = false;
  const presented = form.present(answer, (productKey) => {
    readsName = true;
    return app.productName(productKey);
  });
  const finish = (body: object): RouteResponse => {
    const revision = app.isAgent ? revisionHeaders(answer, app.isKeyed === true) : {};
    const { value } = ok(body, { ...provenanceHeaders(provenance), ...revision });
    // On an agent, a report about another license key may change the name of the product.
    if (cacheable === undefined || (readsName && app.role === 'agent')) return value;
    const confirmedAt = 'confirmedAt' in provenance ? provenance.confirmedAt : null;
    const onServed = (): void => {
      app.metrics.countVerify(answer);
      cacheable.onServed();
    };
    return { ...value, cacheable: { ...cacheable, onServed, licenseKey: license.licenseKey, confirmedAt } };
  };
  return presented instanceof Promise ? presented.then(finish) : finish(presented);
}

/** An agent orders the answers about a license by its revision. */
function revisionHeaders(
  { license, appliedRevision }: LicenseResponse,
  isKeyed: boolean,
): Record<string, string> {
  const { revision } = license;
  if (revision === undefined) return {};
  const applied = appliedRevision === undefined || !isKeyed ? '' : `; applied=${appliedRevision}`;
  return { [revisionHeader]: `${revision}${applied}` };
}

/** The target of a caller that sends only a license key, or at a holder also its product. */
async function targetOf(
  { app, principal }: Pick<FromCaller, 'app' | 'principal'>,
  { licenseKey, productKey }: Pick<LicenseTarget, 'licenseKey'> & { productKey?: string | undefined },
): Promise<LicenseTarget> {
  const tenant = await tenantForLicense(app, principal, licenseKey);
  if (app.role !== 'holder' || tenant.productKey !== null) return { tenant, licenseKey };
  return { tenant: { ...tenant, productKey: productKey ?? null }, licenseKey };
}

/** A target with nothing but a license key that needs no decoding. */
const plainTarget = /^\/api\/v2\/license\/verify\?license_key=([\w.-]+)$/;

function verifyNow(app: App, tenant: Tenant, target: string, form: LicenseForm): RouteResponse | null {
  const licenseKey = parseLicenseKey(plainTarget.exec(target)?.[1] ?? '');
  const verified = licenseKey === null ? null : app.licenseService.verifyNow?.(tenant, licenseKey);
  const { role, productName, metrics } = app;
  const response = verified && responseOf({ role, productName, metrics, isAgent: false }, verified, form);
  return response instanceof Promise ? null : (response ?? null);
}

const refusalsOf: Partial<Record<LicenseTrigger, readonly ProblemCode[]>> = {
  enable: ['license_revoked'],
  usage: ['uses_limit_reached', 'license_expired'],
  decrease: ['license_expired'],
};

/** Licenses in the form of a dialect: specification 4.4. */
export function licenseRoutes(form: LicenseForm): readonly Route[] {
  const answers = { 200: enveloped(form.schema) };
  const verify = route({
    method: 'GET',
    path: '/api/v2/license/verify',
    operationId: 'verifyLicense',
    tag: 'Licenses',
    summary: 'Verify a license key',
    headers: ['provenance'],
    access: { credential: 'product_secret', scope: 'verify' },
    isVerdict: true,
    query: licenseParameters,
    answers,
    respondNow: (app, { tenant }, target) => verifyNow(app, tenant, target, form),
    handle: async (request) => verifyLicense(request, await targetOf(request, request.query), form),
  });
  const changes = licenseChanges.map(({ trigger, scope, operationId, summary }) =>
    route({
      method: 'PUT',
      path: `/api/v2/license/${trigger}`,
      operationId,
      tag: 'Licenses',
      summary,
      headers: ['provenance'],
      takesOperations: true,
      refusals: [...(refusalsOf[trigger] ?? []), 'not_offered_by_store'],
      access: { credential: 'product_secret', scope },
      isVerdict: true,
      body: licenseParameters,
      isBodyInQuery: form.isBodyInQuery,
      answers,
      handle: async (request) =>
        changeLicense(request, { ...(await targetOf(request, request.body)), trigger }, form),
    }),
  );
  return [verify, ...changes];
}
