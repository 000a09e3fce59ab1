import { done, failWith, type Problem, type Result } from '../../domain/problem/problem.ts';
import { problems } from '../../domain/problem/problem-table.ts';
import type { RefusalForm } from '../../http/dialects.ts';
import type { RouteResponse } from '../../http/response.ts';
import { route, type Route } from '../../http/route.ts';
import {
  applyChange,
  confirmMs,
  limitedBy,
  notShown,
  responseOf,
  storeRoute,
  type StoreRequest,
  verifyLicense,
} from '../callers.ts';
import type { StoreRouteParts } from '../store.ts';
import {
  type Call,
  callAnswer,
  type CallName,
  callParameters,
  deactivateAnswer,
  isDeactivated,
  keyIdOf,
  keyOfCall,
  readCall,
  refusal,
  refusalAnswer,
  texts,
  validateAnswer,
} from './wire.ts';

type Request = StoreRequest<Parameters<typeof readCall>[0]>;

type Parts = Pick<StoreRouteParts, 'activate' | 'refresh'>;

/** The store of a key is not named by callers: each of the configured stores is asked. */
const everyStore = { productId: null };

/** What a call is about, and the key of its license here. */
type Target = { call: Call; stored: string };

/** A refusal in the form of a call. Software takes each for a no, so what says nothing about the license key is not sent. */
function refusalForm(call: CallName): RefusalForm {
  return {
    schema: refusalAnswer,
    mediaType: 'application/json',
    exception: null,
    isHidden: ({ code }) => code !== 'license_not_found' && code !== 'malformed_body',
    present({ code, status = problems[code].status, detail }) {
      if (code === 'license_not_found') return refusal(call, texts.unknown);
      return { status: code === 'malformed_body' ? 422 : status, body: { message: detail } };
    },
  };
}

const shared = {
  ...storeRoute,
  method: 'POST',
  headers: ['provenance'],
  isBodyInQuery: true,
  body: callParameters,
  answers: { 200: callAnswer, 400: refusalAnswer, 404: refusalAnswer, 422: refusalAnswer },
} as const;

/** The routes of Lemon Squeezy’s license API, for software that was written for it. */
export function routes(parts: Parts): readonly Route[] {
  return [
    route({
      ...shared,
      path: '/v1/licenses/validate',
      operationId: 'validateAtLemonSqueezy',
      summary: 'Validate a license key as Lemon Squeezy does',
      refusal: refusalForm('validate'),
      handle: (request) => validate(request),
    }),
    route({
      ...shared,
      path: '/v1/licenses/activate',
      operationId: 'activateAtLemonSqueezy',
      summary: 'Activate a license key as Lemon Squeezy does',
      refusal: refusalForm('activate'),
      handle: (request) => activate(request, parts),
    }),
    route({
      ...shared,
      path: '/v1/licenses/deactivate',
      operationId: 'deactivateAtLemonSqueezy',
      summary: 'Deactivate an instance of a license key as Lemon Squeezy does',
      refusal: refusalForm('deactivate'),
      handle: (request) => deactivate(request, parts),
    }),
  ];
}

async function validate(request: Request): Promise<Result<RouteResponse>> {
  const target = targetOf(request, 'validate');
  if ('answered' in target) return target.answered;
  const { app } = request;
  const known = await verifyLicense(request, everyStore, target.stored);
  if (!known.ok) return refuse(app, target, known.problem);
  app.metrics.countVerify(known.value);
  const answer = validateAnswer(known.value.license);
  return answer === null ? notShown : done(responseOf(answer, known.value));
}

/** Only the store makes instances, so the caller waits for it. A key that is not of a configured store is not activated. */
async function activate(request: Request, parts: Parts): Promise<Result<RouteResponse>> {
  const target = targetOf(request, 'activate');
  if ('answered' in target) return target.answered;
  const { app, signal } = request;
  const known = await verifyLicense(request, everyStore, target.stored);
  if (!known.ok) return refuse(app, target, known.problem);
  const { license, productKey: productId } = known.value;
  const { licenseKey } = license;
  const name = target.call.instanceName ?? '';
  const activation = { productId, licenseKey, name, parameters: { keyId: keyIdOf(license) } };
  const outcome = await parts.activate(activation, signal);
  if (outcome.outcome !== 'applied')
    return failWith('upstream_unreachable', `Only Lemon Squeezy activates a license key: ${outcome.detail}`);
  app.changes.announce([{ licenseKey }]);
  return done(responseOf(outcome.value.answer));
}

async function deactivate(request: Request, { refresh }: Parts): Promise<Result<RouteResponse>> {
  const target = targetOf(request, 'deactivate');
  if ('answered' in target) return target.answered;
  const { call, stored } = target;
  const snapshot = request.app.storedLicenses.get(stored);
  const { license, local } = snapshot ?? {};
  if (license !== undefined && isDeactivated({ ...license, enabled: local?.enabled ?? true }))
    return done(responseOf(refusal('deactivate', texts.noInstance)));
  const caller = { ...everyStore, callerKey: call.licenseKey };
  const changed = await applyChange(request, caller, {
    licenseKey: stored,
    trigger: 'disable',
    waitMs: confirmMs,
  });
  if (!changed.ok) return changed;
  // The license key itself has a seat more now.
  refresh(changed.value.productKey, call.licenseKey);
  return done(responseOf(deactivateAnswer(changed.value.license), changed.value));
}

/** Refuses a call about a license that is not answered: of a store that is not configured any more, nothing is said. */
function refuse(
  { products, storedLicenses }: Request['app'],
  { call, stored }: Target,
  problem: Problem,
): Result<RouteResponse> {
  if (problem.code !== 'license_not_found') return { ok: false, problem };
  const productId = storedLicenses.get(stored)?.productId ?? null;
  if (productId !== null && products.idOf(products.keyOf(productId)) !== productId)
    return failWith('upstream_unreachable', 'The store of this key is not configured here.');
  const isOfInstance = stored !== call.licenseKey && storedLicenses.get(call.licenseKey) !== null;
  return isOfInstance ? done(responseOf(refusal('validate', texts.noInstance))) : { ok: false, problem };
}

/** What a call is about; or its answer, if it lacks a parameter, or is about nothing that can exist. */
function targetOf({ app, body }: Request, name: CallName): Target | { answered: Result<RouteResponse> } {
  const call = readCall(body, name);
  if ('status' in call) return { answered: done(responseOf(call)) };
  const stored = keyOfCall(call.licenseKey, name === 'activate' ? null : call.instanceId);
  if (stored === null) return { answered: done(responseOf(refusal(name, texts.unknown))) };
  const limited = limitedBy(app, call.licenseKey);
  return limited === null ? { call, stored } : { answered: limited };
}
