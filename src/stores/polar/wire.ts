import { z } from 'zod';
import { activatedKey, partsOfKey } from '../../domain/agent/activated-key.ts';
import { maxInitialUses, type License, type LicenseExtra } from '../../domain/license.ts';
import type { Digest } from '../../service/ports.ts';
import { parseForeignDate, read, type JsonObject, type Parsed } from '../../upstream/wire.ts';
import { documentOf } from '../document.ts';
import type { Answer } from '../store.ts';
import type { Fault } from './call-wire.ts';

/** What Polar says in a 404. */
export const texts = {
  unknown: 'Not found',
  inactive: 'License key is no longer active.',
  expired: 'License key has expired.',
  conditions: 'License key does not match required conditions',
  benefit: 'License key does not match given benefit.',
  customer: 'License key does not match given user.',
} as const;

/** The form of a refusal: the name of Polar’s error, and a sentence. */
function refusalBody(error: string, detail: unknown): LicenseExtra {
  return { error, detail };
}

const notFound = (detail: string): LicenseExtra => refusalBody('ResourceNotFound', detail);

/** The body of a 404 that says no about a key that exists; null: a text says something else. */
export function closed(detail: unknown): LicenseExtra | null {
  if (detail === texts.inactive || detail === texts.expired) return notFound(detail);
  // The same, as the answer to an activation.
  const [sentence] = typeof detail === 'string' ? (/^License key [^.]*\./.exec(detail) ?? []) : [];
  return sentence === texts.inactive ? notFound(texts.inactive) : null;
}

/** What Polar says from now on about an activation that was given back. */
export const givenBack: LicenseExtra = notFound(texts.unknown);

/** What Polar says about more uses than a key has left. */
export const tooManyUses: RegExp = /License key only has -?\d+ more usages\./;

/** The sentence of Polar in the detail of an operation that Polar has refused; null: it has none. */
export function refusalIn(detail: string): Answer | null {
  const [limited] = tooManyUses.exec(detail) ?? [];
  if (limited !== undefined) return limitAnswer(limited);
  const said = [texts.inactive, texts.expired].find((sentence) => detail.includes(sentence));
  return said === undefined ? null : refusal(said);
}

/** The members of a call about a stored key. `by`: of a validation that counts uses. */
export function writeCall(organizationId: string, storedKey: string, by?: number): JsonObject {
  const { licenseKey, activationId } = partsOfKey(storedKey);
  return {
    key: licenseKey,
    organization_id: organizationId,
    ...(activationId !== null && { activation_id: activationId }),
    ...(by !== undefined && { increment_usage: by }),
  };
}

const text = z.string().max(1_024).catch('');
const instant = z.string().max(64).nullish().catch(null);

const shownLicense = z.looseObject({
  key: z.string(),
  status: z.literal('granted'),
  usage: z.int().nonnegative().max(maxInitialUses),
  limit_usage: z.int().nullish(),
  expires_at: instant,
  created_at: instant,
  benefit_id: text.optional(),
  customer: z.looseObject({ email: text.optional() }).nullish().catch(null),
  activation: z.looseObject({ id: z.string() }).nullish(),
});

/** The member of a stored document with the conditions under which Polar has confirmed it. No caller gets it. */
const conditionsMember = 'latchkey_conditions';

/** Names conditions, as Polar compares them: the order of their members does not matter. Null: there are none. */
export function conditionsName(conditions: JsonObject, digest: Digest): string | null {
  const sorted = Object.entries(conditions).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return sorted.length === 0 ? null : digest(JSON.stringify(sorted));
}

/** What an answer is about: a stored key, and the conditions that were sent with it. */
type About = { storedKey: string; conditions?: string | null };

/** Reads a validation: the license of the key, or of the activation that was validated with it. */
export function readLicense(body: JsonObject, { storedKey, conditions = null }: About): Parsed<License> {
  const { licenseKey, activationId } = partsOfKey(storedKey);
  const reading = read(shownLicense, body);
  if ('fault' in reading) return reading;
  const { customer = null, activation = null, ...others } = reading.value;
  if (others.key !== licenseKey) return { fault: 'the response is about another license key' };
  if ((activation?.id ?? null) !== activationId) return { fault: 'the response is about another activation' };
  const extra = {
    ...documentOf(activation === null ? body : { ...body, activation: withoutMark(activation) }, [
      'customer',
      'activation',
      'user',
    ]),
    ...(conditions !== null && { [conditionsMember]: conditions }),
  };
  const isKey = activationId === null;
  return {
    value: {
      licenseKey: storedKey,
      productKey: others.benefit_id ?? '',
      buyerEmail: customer?.email ?? '',
      // Uses are counted at the key, and not at its activations.
      uses: isKey ? others.usage : 0,
      usesLimit: isKey ? others.limit_usage || null : null,
      enabled: true,
      createdAt: parseForeignDate(others.created_at) ?? 0,
      expiresAt: lastInstant(parseForeignDate(others.expires_at)),
      extra,
    },
  };
}

/** Polar says no from the instant of the end on; here a license is still valid at its end, in whole seconds. */
function lastInstant(end: number | null): number | null {
  return end === null ? null : Math.floor((end - 1) / 1_000) * 1_000;
}

const shownActivation = z.looseObject({ id: z.string(), license_key: z.looseObject({}) });

/** Our mark in the `meta` of an activation, by which it is found again. No caller gets it. */
export const attemptMember = 'latchkey_activation';

/** The `meta` of an activation with our mark, unless the caller has used all 50 members. */
export function withMark(meta: JsonObject, attemptId: string): JsonObject {
  return Object.keys(meta).length < 50 ? { ...meta, [attemptMember]: attemptId } : meta;
}

/** An activation without our mark. */
function withoutMark(activation: JsonObject): JsonObject {
  const { meta } = activation;
  if (typeof meta !== 'object' || meta === null || !(attemptMember in meta)) return activation;
  const { [attemptMember]: _, ...others } = meta as JsonObject;
  return { ...activation, meta: others };
}

/** An activation as Polar answers it, and its license. */
export type ReadActivation = { activationId: string; license: License; body: JsonObject };

export function readActivation(
  body: JsonObject,
  { licenseKey, conditions }: { licenseKey: string; conditions: string | null },
): Parsed<ReadActivation> {
  const reading = read(shownActivation, withoutMark(body));
  if ('fault' in reading) return reading;
  const { license_key: shown, ...activation } = reading.value;
  const storedKey = activatedKey(licenseKey, activation.id);
  const pair = readLicense({ ...shown, activation }, { storedKey, conditions });
  if ('fault' in pair) return pair;
  return { value: { activationId: activation.id, license: pair.value, body: reading.value } };
}

/** The license of the key that an activation shows; null: it shows none. */
export function keyOfActivation(body: object, licenseKey: string): License | null {
  const shown = 'license_key' in body ? (body.license_key as JsonObject) : {};
  const reading = readLicense({ ...shown, activation: null }, { storedKey: licenseKey });
  return 'value' in reading ? reading.value : null;
}

/** The activation of a stored document, as Polar answers an activation; null: it is not good. */
export function activationOf({ extra = {} }: Pick<License, 'extra'>): JsonObject | null {
  const { [conditionsMember]: _, activation, ...license_key } = extra;
  if (typeof activation !== 'object' || activation === null) return null;
  return { ...activation, license_key };
}

const listedActivations = z.looseObject({ activations: z.array(z.looseObject({ id: z.string() })) });

/** Finds the activation with our mark among those of a key; null: none has it. */
export function findActivation(body: JsonObject, attemptId: string): Parsed<JsonObject | null> {
  const reading = read(listedActivations, body);
  if ('fault' in reading) return reading;
  const { activations, ...license_key } = reading.value;
  const found = activations.find(({ meta }) => {
    const members = typeof meta === 'object' && meta !== null ? (meta as JsonObject) : {};
    return members[attemptMember] === attemptId;
  });
  return { value: found === undefined ? null : { ...found, license_key } };
}

export function refusal(detail: string): Answer {
  return { status: 404, body: notFound(detail) };
}

/** What Polar says about wrong members. */
export function invalid(faults: readonly Fault[]): Answer {
  return { status: 422, body: refusalBody('RequestValidationError', faults) };
}

/** The answer to more uses than are left. */
export function limitAnswer(detail: string): Answer {
  return { status: 400, body: refusalBody('BadRequest', detail) };
}

export function usesLeft({ uses, usesLimit }: License): string {
  return `License key only has ${(usesLimit ?? 0) - uses} more usages.`;
}

/** An activation of a key that Polar refuses has a text of its own. */
export function activationRefusal({ status, body }: Answer): Answer {
  const { detail } = body as { detail: string };
  if (status !== 404 || detail === texts.unknown) return { status, body };
  const more = detail === texts.inactive ? ' This license key can not be activated.' : '';
  return { status: 403, body: refusalBody('NotPermitted', `${detail}${more}`) };
}

/**
 * What Polar would answer to a validation now: what it last answered, with the uses as callers see them; absent: as it
 * answered them. Null: it has not said anything.
 */
export function validateAnswer(license: License, usage?: number): Answer | null {
  const { extra, enabled, status } = license;
  if (extra === undefined || Object.keys(extra).length === 0) return null;
  // Perhaps it is good again, of which no document tells yet.
  if ('error' in extra) return enabled ? null : { status: 404, body: extra };
  if (status === 'expired') return refusal(texts.expired);
  // The activation was given back here.
  if (!enabled) return { status: 404, body: givenBack };
  const { [conditionsMember]: _, ...document } = extra;
  return { status: 200, body: { ...document, ...(usage !== undefined && { usage }) } };
}

/** Why a stored document does not match what a call names; null: it matches. */
export function mismatch(
  { extra = {} }: Pick<License, 'extra'>,
  { benefitId, customerId }: { benefitId: string | null; customerId: string | null },
): Answer | null {
  if (benefitId !== null && benefitId !== extra['benefit_id']) return refusal(texts.benefit);
  if (customerId !== null && customerId !== extra['customer_id']) return refusal(texts.customer);
  return null;
}

/** Whether Polar has confirmed a document under other conditions than a call names. Without conditions, all do. */
export function needsConditions({ extra = {} }: Pick<License, 'extra'>, conditions: string | null): boolean {
  const confirmed = extra[conditionsMember] ?? null;
  return confirmed !== null && confirmed !== conditions;
}

export const licenseAnswer = z
  .looseObject({ key: z.string(), status: z.literal('granted'), usage: z.int() })
  .meta({ id: 'PolarLicenseKey' });
export const activationAnswer = z
  .looseObject({ id: z.string(), label: z.string(), license_key: z.looseObject({}) })
  .meta({ id: 'PolarActivation' });
export const refusalAnswer = z
  .object({ error: z.string(), detail: z.union([z.string(), z.array(z.looseObject({}))]) })
  .meta({ id: 'PolarRefusal' });
