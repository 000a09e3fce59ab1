import type { License, LicenseTrigger } from '../../domain/license.ts';
import { done, failWith, type Problem, type Result } from '../../domain/problem/problem.ts';
import { problems } from '../../domain/problem/problem-table.ts';
import type { App } from '../../http/app.ts';
import type { RefusalForm } from '../../http/dialects.ts';
import { bearerToken } from '../../http/entry/admission.ts';
import type { RouteResponse } from '../../http/response.ts';
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
import type { StoreRouteParts } from '../store.ts';
import {
  type Call,
  callParameters,
  changeAnswer,
  isOfPermalink,
  licenseAnswer,
  needsProductId,
  readCall,
  refusal,
  refusalAnswer,
  replaced,
  storedKey,
  texts,
  verifyAnswer,
} from './wire.ts';

const unknown = done(responseOf(refusal(404, texts.unknown)));

type Request = StoreRequest<Parameters<typeof readCall>[0]>;

/** A call about a license key of a configured product; `productId`: null if only the permalink is known. */
type Target = { call: Call; callerKey: string; productId: string | null };

/**
 * The products by their permalinks in lower case, as purchases have shown them. The configuration does not name the permalink
 * of a product.
 */
type Permalinks = Map<string, string>;

type RouteParts = Pick<StoreRouteParts, 'accessToken' | 'client' | 'learn'>;

type Parts = RouteParts & { permalinks: Permalinks };

/** What Gumroad says to such a request, too. It reads the last of several parameters with one name. */
const statusesOfGumroad: ReadonlySet<number> = new Set([400, 401, 404]);

/** A refusal in Gumroad’s form. Software takes each for a no, so what says nothing about the license key is not sent. */
export const refusalForm: RefusalForm = {
  schema: refusalAnswer,
  mediaType: 'application/json',
  exception: null,
  isHidden: (problem) => !statusesOfGumroad.has(statusOf(problem)) || problem.code === 'duplicate_parameter',
  present: (problem) =>
    refusal(statusOf(problem), problem.code === 'license_not_found' ? texts.unknown : problem.detail),
};

function statusOf({ code, status }: Problem): number {
  return status ?? problems[code].status;
}

/** The paths under api.gumroad.com, and the same under gumroad.com. */
const bases = [
  { base: '', suffix: '' },
  { base: '/api', suffix: 'Below' },
] as const;

const sellerChanges: readonly {
  name: string;
  trigger: Exclude<LicenseTrigger, 'refund' | 'usage'>;
  operationId: string;
  summary: string;
}[] = [
  { name: 'enable', trigger: 'enable', operationId: 'enableAtGumroad', summary: 'Enable a license key' },
  { name: 'disable', trigger: 'disable', operationId: 'disableAtGumroad', summary: 'Disable a license key' },
  {
    name: 'decrement_uses_count',
    trigger: 'decrease',
    operationId: 'decrementAtGumroad',
    summary: 'Take a use back',
  },
];

const shared = {
  ...storeRoute,
  headers: ['provenance'],
  isBodyInQuery: true,
  refusal: refusalForm,
  body: callParameters,
  answers: { 200: licenseAnswer, 404: refusalAnswer },
} as const;

/** The routes of Gumroad’s license API, for software that was written for it. */
export function routes(storeParts: RouteParts): readonly Route[] {
  const parts: Parts = { ...storeParts, permalinks: new Map() };
  return bases.flatMap(({ base, suffix }) => [
    route({
      ...shared,
      method: 'POST',
      path: `${base}/v2/licenses/verify`,
      operationId: `verifyAtGumroad${suffix}`,
      summary: 'Verify a license key as Gumroad does',
      handle: (request) => verify(request, parts),
    }),
    ...sellerChanges.map(({ name, trigger, operationId, summary }) =>
      route({
        ...shared,
        method: 'PUT',
        path: `${base}/v2/licenses/${name}`,
        operationId: `${operationId}${suffix}`,
        summary: `${summary} as Gumroad does`,
        handle: (request) => change(request, trigger, parts),
      }),
    ),
    route({
      ...shared,
      method: 'PUT',
      path: `${base}/v2/licenses/rotate`,
      operationId: `rotateAtGumroad${suffix}`,
      summary: 'Replace a license key as Gumroad does',
      handle: (request) => rotate(request, parts),
    }),
  ]);
}

async function verify(request: Request, { permalinks }: Parts): Promise<Result<RouteResponse>> {
  const target = targetOf(request);
  if ('answered' in target) return target.answered;
  const { app } = request;
  const known = await verifyLicense(request, target, target.callerKey);
  if (!known.ok) return refuse(app, target, known.problem, permalinks);
  app.metrics.countVerify(known.value);
  const first = judge(app, target, known.value);
  // Gumroad counts no use of a key that it refuses.
  if (!first.ok || first.value.status !== 200) return first;
  const { productId, call } = target;
  const { extra = {} } = known.value.license;
  if (productId === null && call.permalink !== null && 'purchase' in extra)
    permalinks.set(call.permalink.toLowerCase(), known.value.productKey);
  if (!call.isCounted) return first;
  const used = await applyChange(request, target, {
    licenseKey: target.callerKey,
    trigger: 'usage',
    waitMs: confirmMs,
  });
  // Too old for another use: the answer that the purchase is not good holds.
  if (!used.ok && used.problem.code === 'verdict_expired' && !known.value.license.enabled) return first;
  if (!used.ok) return used;
  app.metrics.countUse();
  return judge(app, target, used.value);
}

async function change(
  request: Request,
  trigger: (typeof sellerChanges)[number]['trigger'],
  { accessToken, permalinks }: Parts,
): Promise<Result<RouteResponse>> {
  const target = sellersTargetOf(request, accessToken());
  if ('answered' in target) return target.answered;
  // An enable always waits for Gumroad, and a disable never.
  const changed = await applyChange(request, target, {
    licenseKey: target.callerKey,
    trigger,
    waitMs: trigger === 'decrease' ? confirmMs : 0,
  });
  return changed.ok
    ? done(responseOf(changeAnswer(changed.value.license), changed.value))
    : refuse(request.app, target, changed.problem, permalinks);
}

/** Only Gumroad makes license keys, so the caller waits for it. The old license key is refused here from then on. */
async function rotate(
  request: Request,
  { accessToken, client, learn }: RouteParts,
): Promise<Result<RouteResponse>> {
  const target = sellersTargetOf(request, accessToken());
  if ('answered' in target) return target.answered;
  const { callerKey: licenseKey } = target;
  const productId = target.productId ?? request.app.storedLicenses.get(licenseKey)?.productId ?? null;
  if (productId === null) return done(responseOf(needsProductId));
  const outcome = await client.rotate?.(productId, licenseKey, request.signal);
  if (outcome?.outcome === 'applied') {
    await learn(productId, licenseKey, replaced);
    return done(responseOf({ status: 200, body: outcome.value }));
  }
  const isNo = outcome?.outcome === 'not_applied' && ['missing', 'refused'].includes(outcome.reason);
  if (isNo) return done(responseOf(refusal(404, outcome.message ?? texts.unknown)));
  const why = outcome?.detail ?? 'this store has no such call';
  return failWith('upstream_unreachable', `Only Gumroad replaces a license key: ${why}`);
}

/** What a call of the seller is about; or its answer, also if it does not have the access token. */
function sellersTargetOf(request: Request, expected: string | null): ReturnType<typeof targetOf> {
  const target = targetOf(request);
  if ('answered' in target) return target;
  const { call, callerKey } = target;
  const sent = call.accessToken ?? bearerToken(request.authorization);
  const refused = refuseToken(request.app, sent, expected);
  if (refused !== null) return { answered: refused };
  const known = request.app.storedLicenses.get(callerKey)?.license ?? {};
  return isOfOther(call, known) ? { answered: unknown } : target;
}

/** What a call is about; or its answer, if it is wrong, or about nothing that is known here. */
function targetOf({ app, body }: Request): Target | { answered: Result<RouteResponse> } {
  const call = readCall(body);
  if ('status' in call) return { answered: done(responseOf(call)) };
  const callerKey = storedKey(call.licenseKey ?? '');
  if (callerKey === null) return { answered: unknown };
  const limited = limitedBy(app, callerKey);
  if (limited !== null) return { answered: limited };
  if (call.productId === null) {
    return call.permalink === null
      ? { answered: done(responseOf(needsProductId)) }
      : { call, callerKey, productId: null };
  }
  const productId = app.products.idOf(call.productId);
  if (productId !== null) return { call, callerKey, productId };
  return { answered: refuseProduct(app, call.productId) };
}

/** Refuses a call. That no configured product has the license key says nothing about the permalink of another product. */
function refuse(
  app: Request['app'],
  { call: { permalink }, callerKey, productId }: Target,
  problem: Problem,
  permalinks: Permalinks,
): Result<never> {
  if (problem.code !== 'license_not_found' || productId !== null || permalink === null)
    return { ok: false, problem };
  const product =
    app.storedLicenses.get(callerKey)?.productId ?? permalinks.get(permalink.toLowerCase()) ?? '';
  const isConfigured = app.products.idOf(app.products.keyOf(product)) === product;
  return isConfigured ? { ok: false, problem } : refuseProduct(app, permalink);
}

/** The answer to a verify. Nothing is answered for a license that Gumroad has not shown. */
function judge(app: App, { call }: Target, response: LicenseResponse): Result<RouteResponse> {
  const { license } = response;
  const answer = verifyAnswer(license, app.now());
  if (answer === null) return notShown;
  return isOfOther(call, license) ? unknown : done(responseOf(answer, response));
}

/** Whether a call names the product of a license by the permalink of another one. */
function isOfOther({ productId, permalink }: Call, { extra = {} }: Pick<License, 'extra'>): boolean {
  return productId === null && permalink !== null && !isOfPermalink(extra, permalink);
}
