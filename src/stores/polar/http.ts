import { activatedKey, partsOfKey } from '../../domain/agent/activated-key.ts';
import type { LicenseSnapshot } from '../../domain/agent/license-snapshot.ts';
import { licenseKeysIn } from '../../domain/license.ts';
import type { NotAppliedReason, Outcome } from '../../domain/outbox/outcome.ts';
import { done, failWith, type Problem, type Result } from '../../domain/problem/problem.ts';
import type { RefusalForm } from '../../http/dialects.ts';
import { bearerToken } from '../../http/entry/admission.ts';
import { noContent, type RouteResponse } from '../../http/response.ts';
import { route, type Route } from '../../http/route.ts';
import type { LicenseResponse } from '../../service/services.ts';
import {
  applyChange,
  confirmMs,
  limitedBy,
  notShown,
  refuseProduct,
  refuseToken,
  responseOf,
  storeRoute,
  type StoreRequest,
  verifyLicense,
} from '../callers.ts';
import type { Answer, StoreRouteParts } from '../store.ts';
import {
  callParameters,
  maxUses,
  readActivate,
  readDeactivate,
  readValidate,
  type ActivateCall,
  type DeactivateCall,
  type Faults,
  type Named,
  type ValidateCall,
} from './call-wire.ts';
import type { ActivationParameters } from './upstream.ts';
import {
  activationAnswer,
  activationRefusal,
  closed,
  conditionsName,
  invalid,
  keyOfActivation,
  licenseAnswer,
  limitAnswer,
  mismatch,
  needsConditions,
  refusal,
  refusalAnswer,
  refusalIn,
  texts,
  usesLeft,
  validateAnswer,
} from './wire.ts';

/** A call about a license key of the configured organization. */
type Target<Call extends Named> = { call: Call; productId: string; callerKey: string };

const unknown = refusal(texts.unknown);

const unauthorized: Answer = { status: 401, body: { error: 'Unauthorized', detail: 'Unauthorized' } };

/** What Polar says to such a request, too. */
const shownProblems: Partial<Record<Problem['code'], Answer>> = {
  license_not_found: unknown,
  credentials_missing: unauthorized,
  credentials_invalid: unauthorized,
  malformed_body: invalid([{ type: 'json_invalid', loc: ['body', 0], msg: 'JSON decode error', input: {} }]),
};

/** A refusal in Polar’s form. Software takes each for a no, so what says nothing about the license key is not sent. */
const refusalForm: RefusalForm = {
  schema: refusalAnswer,
  mediaType: 'application/json',
  exception: null,
  isHidden: ({ code }) => !(code in shownProblems),
  present: ({ code, detail }) =>
    shownProblems[code] ?? { status: 503, body: { error: 'ResourceUnavailable', detail } },
};

/** The paths for callers without a credential, and those for callers with the token of the organization. */
const bases = [
  { base: '/v1/customer-portal/license-keys', suffix: '', isPublic: true },
  { base: '/v1/license-keys', suffix: 'AsSeller', isPublic: false },
] as const;

const shared = {
  ...storeRoute,
  method: 'POST',
  refusal: refusalForm,
  body: callParameters,
} as const;

/** The routes of Polar’s license keys, for software that was written for them. */
export function routes(parts: StoreRouteParts): readonly Route[] {
  return bases.flatMap(({ base, suffix, isPublic }) => {
    const refused = (request: StoreRequest): Result<never> | null =>
      isPublic ? null : refuseToken(request.app, bearerToken(request.authorization), parts.accessToken());
    return [
      route({
        ...shared,
        path: `${base}/validate`,
        operationId: `validateAtPolar${suffix}`,
        summary: 'Validate a license key as Polar does',
        headers: ['provenance'],
        answers: { 200: licenseAnswer, 400: refusalAnswer, 404: refusalAnswer, 422: refusalAnswer },
        handle: (request) => refused(request) ?? validate(request, readValidate(request.body), parts),
      }),
      route({
        ...shared,
        path: `${base}/activate`,
        operationId: `activateAtPolar${suffix}`,
        summary: 'Activate a license key as Polar does',
        answers: { 200: activationAnswer, 403: refusalAnswer, 404: refusalAnswer, 422: refusalAnswer },
        handle: (request) => refused(request) ?? activate(request, readActivate(request.body), parts),
      }),
      route({
        ...shared,
        path: `${base}/deactivate`,
        operationId: `deactivateAtPolar${suffix}`,
        summary: 'Deactivate a license key as Polar does',
        answers: { 204: null, 404: refusalAnswer, 422: refusalAnswer },
        handle: (request) => refused(request) ?? deactivate(request, readDeactivate(request.body)),
      }),
    ];
  });
}

async function validate(
  request: StoreRequest,
  sent: ValidateCall | Faults,
  parts: StoreRouteParts,
): Promise<Result<RouteResponse>> {
  const target = targetOf<ValidateCall>(request, sent);
  if ('answered' in target) return target.answered;
  const { app } = request;
  const { key, activationId, conditions, incrementUsage: by } = target.call;
  const storedKey = activationId === null ? key : activatedKey(key, activationId);
  const asked = { conditions, meta: {}, conditionsName: conditionsName(conditions, app.digest) };
  const known = await verify(request, target, storedKey, { asked, parts });
  if (!known.ok) return known;
  if ('status' in known.value) return done(responseOf(known.value));
  app.metrics.countVerify(known.value);
  const answer = answerOf(request, known.value, storedKey);
  if (answer === null) return notShown;
  const refused = answer.status === 200 ? mismatch(known.value.license, target.call) : answer;
  if (refused !== null) return done(responseOf(refused, known.value));
  if ((by ?? 0) === 0) return done(responseOf(answer, known.value));
  return await use(request, target, known.value, answer);
}

/** Counts uses at the key, for a validation that is good. */
async function use(
  request: StoreRequest,
  target: Target<ValidateCall>,
  known: LicenseResponse,
  answer: Answer,
): Promise<Result<RouteResponse>> {
  const { app } = request;
  const { key, incrementUsage, activationId } = target.call;
  const by = incrementUsage ?? 0;
  if (activationId !== null) {
    const ofKey = await verifyLicense(request, target, key);
    if (!ofKey.ok) return ofKey;
    const own = answerOf(request, ofKey.value, key);
    if (own === null) return notShown;
    if (own.status !== 200) return done(responseOf(own, ofKey.value));
  }
  const shown = 'usage' in answer.body ? Number(answer.body.usage) : 0;
  if (shown + by > maxUses) return failWith('upstream_unreachable', 'Polar cannot count so far.');
  const used = await applyChange(request, target, {
    licenseKey: key,
    trigger: 'usage',
    amount: by,
    waitMs: confirmMs,
    isRefusable: true,
  });
  if (used.ok) {
    app.metrics.countUse();
    return done(responseOf({ ...answer, body: { ...answer.body, usage: used.value.license.uses } }, known));
  }
  const refused = useRefusal(used.problem, app.storedLicenses.get(key));
  return refused === null ? used : done(responseOf(refused));
}

/** What Polar says about a use that it, or this agent, has refused. Null: nothing that is known. */
function useRefusal({ code, detail }: Problem, stored: LicenseSnapshot | null): Answer | null {
  if (stored === null) return null;
  const { license, local } = stored;
  if (code === 'uses_limit_reached') return limitAnswer(usesLeft({ ...license, uses: local.uses }));
  if (code !== 'upstream_refused') return null;
  // A read may have shown that the key is closed before the use was sent.
  const answer = refusalIn(detail) ?? validateAnswer(license, local.uses);
  return answer?.status === 200 ? null : answer;
}

async function activate(
  request: StoreRequest,
  sent: ActivateCall | Faults,
  { activate: send, learn, learnLicense }: StoreRouteParts,
): Promise<Result<RouteResponse>> {
  const target = targetOf<ActivateCall>(request, sent);
  if ('answered' in target) return target.answered;
  const known = await knownKey(request, target);
  if (!known.ok) return known;
  const { app } = request;
  const { call, productId } = target;
  const { key: licenseKey, label: name, conditions, meta } = call;
  const parameters = { conditions, meta, conditionsName: conditionsName(conditions, app.digest) };
  const activation = { productId, licenseKey, name, parameters };
  const outcome = await send(activation, request.signal);
  if (outcome.outcome !== 'applied') return refuseOutcome(outcome, activationRefusal);
  const { answer } = outcome.value;
  const verdict = closed('detail' in answer.body ? answer.body.detail : null);
  if (verdict !== null) await learn(productId, licenseKey, { enabled: false, extra: verdict });
  // What is known of the key has its uses; an activation shows nothing newer about them.
  const ofKey = keyOfActivation(answer.body, licenseKey);
  if (ofKey !== null && app.storedLicenses.get(licenseKey) === null) await learnLicense(productId, ofKey);
  return done(responseOf(answer));
}

async function deactivate(
  request: StoreRequest,
  sent: DeactivateCall | Faults,
): Promise<Result<RouteResponse>> {
  const target = targetOf<DeactivateCall>(request, sent);
  if ('answered' in target) return target.answered;
  const { key, activationId } = target.call;
  const storedKey = activatedKey(key, activationId);
  const stored = request.app.storedLicenses.get(storedKey);
  if (stored !== null && isGivenBack(stored)) return done(responseOf(unknown));
  const changed = await applyChange(request, target, {
    licenseKey: storedKey,
    trigger: 'disable',
    waitMs: 0,
  });
  return changed.ok ? noContent() : changed;
}

/** Looks up a key of which nothing is known, within the limit for unknown keys. */
async function knownKey(request: StoreRequest, target: Target<Named>): Promise<Result<unknown>> {
  const { key } = target.call;
  if (request.app.storedLicenses.get(key) !== null) return done(null);
  return await verifyLicense(request, target, key);
}

/** Whether an activation was given back, here or at Polar. */
function isGivenBack({ license, local }: LicenseSnapshot): boolean {
  return (license.enabled && !local.enabled) || license.extra?.['detail'] === texts.unknown;
}

type Asked = { asked: ActivationParameters; parts: Pick<StoreRouteParts, 'verifyWith'> };

/** The license, or the answer of Polar that only Polar can give. */
async function verify(
  request: StoreRequest,
  target: Target<ValidateCall>,
  storedKey: string,
  { asked, parts }: Asked,
): Promise<Result<LicenseResponse | Answer>> {
  const { app, signal } = request;
  const { activationId } = target.call;
  const stored = activationId === null ? null : app.storedLicenses.get(storedKey);
  const name = asked.conditionsName;
  const isOpen = stored === null ? name !== null : isUnseen(stored) || needsConditions(stored.license, name);
  if (activationId !== null && isOpen) {
    const { productId } = target;
    const known = await knownKey(request, target);
    if (!known.ok) return known;
    const about = { licenseKey: storedKey, parameters: asked };
    const outcome = await parts.verifyWith(productId, about, signal);
    if (outcome.outcome !== 'applied') return refuseOutcome(outcome);
  }
  return await verifyLicense(request, target, storedKey);
}

/** Whether Polar has shown no document of a license that is good. */
function isUnseen({ license: { enabled, extra = {} } }: LicenseSnapshot): boolean {
  return enabled && !('key' in extra);
}

/** Reasons for which Polar itself has said no. */
const saidNo: ReadonlySet<NotAppliedReason> = new Set(['missing', 'refused']);

/** What a caller gets whose request was passed on, and not carried out. */
function refuseOutcome(
  outcome: Exclude<Outcome<unknown>, { outcome: 'applied' }>,
  form: (answer: Answer) => Answer = (answer) => answer,
): Result<never> | { ok: true; value: Answer & RouteResponse } {
  if (outcome.outcome === 'not_applied' && saidNo.has(outcome.reason) && outcome.message !== undefined) {
    const answer = form(refusal(outcome.message));
    return done({ ...answer, headers: {} });
  }
  return failWith('upstream_unreachable', `Only Polar can answer this: ${outcome.detail}`);
}

/** The answer to a validation. Null: Polar has not shown the license. */
function answerOf(
  { app }: Pick<StoreRequest, 'app'>,
  { license, provenance }: LicenseResponse,
  storedKey: string,
): Answer | null {
  const { licenseKey, activationId } = partsOfKey(storedKey);
  if (activationId === null) return validateAnswer(license, license.uses);
  const key = app.storedLicenses.get(licenseKey);
  const confirmedAt = 'confirmedAt' in provenance ? (provenance.confirmedAt ?? 0) : 0;
  const isNewer = key !== null && (key.confirmedAt >= confirmedAt || key.local.pending > 0);
  if (key === null || !isNewer) return validateAnswer(license);
  // Since Polar has said no about the key, none of its activations is good.
  if (key.license.extra?.['error'] !== undefined && !key.license.enabled) return validateAnswer(key.license);
  return validateAnswer(license, key.local.uses);
}

/** What a call is about; or its answer, if it is wrong, or about nothing that is known here. */
function targetOf<Call extends Named>(
  { app }: Pick<StoreRequest, 'app'>,
  sent: Call | Faults,
): Target<Call> | { answered: Result<RouteResponse> } {
  if ('faults' in sent) return { answered: done(responseOf(invalid(sent.faults))) };
  const { key, organizationId } = sent;
  if (key.trim() === '') return { answered: done(responseOf(unknown)) };
  // A key that looks like an activation would be asked for as one, and Polar cannot store a null character.
  if (key.includes('\0') || licenseKeysIn(key).some((each) => partsOfKey(each).activationId !== null))
    return { answered: failWith('upstream_unreachable', 'A license key with “ #” cannot be served.') };
  const limited = limitedBy(app, key);
  if (limited !== null) return { answered: limited };
  const productId = app.products.idOf(organizationId);
  if (productId !== null) return { call: sent, productId, callerKey: key };
  return { answered: refuseProduct(app, organizationId, 'organization') };
}
