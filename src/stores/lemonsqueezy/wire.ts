import { z } from 'zod';
import { activatedKey, partsOfKey } from '../../domain/agent/activated-key.ts';
import { parseLicenseKey, type License, type LicenseExtra } from '../../domain/license.ts';
import { foldKey, parseForeignDate, read, type JsonObject, type Parsed } from '../../upstream/wire.ts';
import { parameters, type ValuesOf } from '../../wire/parameters.ts';
import { closedLicense, documentOf, isObject } from '../document.ts';
import type { Activation, Answer } from '../store.ts';

/** The calls of the license API, each with the member of its answer that says whether it succeeded. */
export const verdicts = { validate: 'valid', activate: 'activated', deactivate: 'deactivated' } as const;

export type CallName = keyof typeof verdicts;

/** What Lemon Squeezy says in `error`. */
export const texts = {
  unknown: 'license_key not found.',
  /** Of an instance that was deactivated, or never was. */
  noInstance: 'license_key_instance not found.',
  expired: 'This license key is expired.',
} as const;

/** Whether an answer says that there is no such license key or instance; it says so with several texts and statuses. */
export function saysUnknown(body: JsonObject, call: CallName): boolean {
  return body[verdicts[call]] === false && /\bnot found\.?$/.test(textOf(body['error']));
}

const text = z.string().max(1_024).catch('');
const id = z.union([z.int().transform(String), text]).catch('');

const date = z.unknown().optional();

/** What is read of an answer. What no verdict depends on never makes it unreadable. */
const members = {
  error: z.string().nullish().catch(null),
  license_key: z.looseObject({ key: text, status: text, created_at: date, expires_at: date }).nullish(),
  instance: z.looseObject({ id, created_at: date }).nullish(),
  meta: z.looseObject({ store_id: id, customer_email: text }).nullish(),
};
const validated = z.looseObject({ ...members, valid: z.boolean() });
const activated = z.looseObject({ ...members, activated: z.literal(true) });
const deactivated = z.looseObject({ ...members, deactivated: z.literal(true) });

/** The member of `License.extra` with the status of an answer that was not 200. */
const statusName = 'http_status';

type Shown = z.infer<z.ZodObject<typeof members>>;

/** The statuses of a key that may be used: with and without an instance. */
const goodStatuses: ReadonlySet<string> = new Set(['active', 'inactive']);

/** A no without a license key that is known to come from Lemon Squeezy. */
const closedText = /^(?:This license key|license_key)(?: is| has)? (?:disabled|expired)\.?$/;

/** What an answer is about, and when it came (epoch ms). `storedKey`: the license key, and the instance that was asked for. */
export type About = { storedKey: string; now: number };

/** Reads an answer to a validate, and its status. */
export function readValidated(body: JsonObject, about: About, status: number): Parsed<License> {
  const reading = read(validated, body);
  if ('fault' in reading) return reading;
  const { valid, license_key: key, meta, error } = reading.value;
  if (valid && (!key || !meta)) return { fault: 'the response shows no license key' };
  if (!valid && !key && !closedText.test(error ?? ''))
    return { fault: 'the response is not about a license key' };
  const extra = {
    ...documentOf(body, Object.keys(members)),
    ...(status !== 200 && { [statusName]: status }),
  };
  const license = licenseOf(reading.value, about, extra);
  if ('fault' in license) return license;
  const enabled = valid && goodStatuses.has(key?.status ?? '');
  return { value: { ...license.value, enabled }, ...(!(key && meta) && { shows: 'enabled' }) };
}

/** The activation that an answer has made: its instance, and its licenses as a validate would show them. */
export function readActivated(
  body: JsonObject,
  { storedKey: licenseKey, now }: About,
): Parsed<{ activationId: string; licenses: readonly License[] }> {
  const reading = read(activated, body);
  if ('fault' in reading) return reading;
  const { instance, license_key: key, meta } = reading.value;
  if (!instance?.id || !key || !meta) return { fault: 'the response shows no instance' };
  const { activated: _, ...document } = documentOf(body, Object.keys(members));
  const extra = { valid: true, ...document };
  const storedKey = activatedKey(licenseKey, instance.id);
  const own = licenseOf(reading.value, { storedKey, now }, extra);
  const ofKey = { ...reading.value, instance: null };
  const bare = licenseOf(ofKey, { storedKey: licenseKey, now }, { ...extra, instance: null });
  if ('fault' in own) return own;
  if ('fault' in bare) return bare;
  return { value: { activationId: instance.id, licenses: [own.value, bare.value] } };
}

/** The answer to an activate, from what a validate has shown of its instance. */
export function activateAnswer({ extra = {} }: License): Answer {
  const { valid: _, [statusName]: __, ...document } = extra;
  return { status: 200, body: { activated: true, ...document } };
}

/** Reads an answer to a deactivate. It shows the license key without the instance, which may have been gone already. */
export function readDeactivated(body: JsonObject, about: About): Parsed<License> {
  if (saysUnknown(body, 'deactivate'))
    return { value: closedLicense(about.storedKey, goneInstance), shows: 'enabled' };
  const reading = read(deactivated, body);
  if ('fault' in reading) return reading;
  const { deactivated: _, ...document } = documentOf(body, Object.keys(members));
  const gone = { valid: false, error: texts.noInstance, [statusName]: 404 };
  const license = licenseOf(reading.value, about, { ...gone, ...document, error: texts.noInstance });
  if ('fault' in license) return license;
  return { value: { ...license.value, enabled: false }, ...(!reading.value.meta && { shows: 'enabled' }) };
}

/** The license of an answer. It counts no uses. */
function licenseOf(
  { license_key: key, instance, meta }: Shown,
  { storedKey, now }: About,
  extra: LicenseExtra,
): Parsed<License> {
  const { licenseKey, activationId } = partsOfKey(storedKey);
  const spelled = key?.key || licenseKey;
  if (foldKey(spelled) !== foldKey(licenseKey)) return { fault: 'the response is about another license key' };
  if (activationId !== null && instance && instance.id !== activationId)
    return { fault: 'the response is about another instance' };
  const value = {
    licenseKey: activationId === null ? spelled : activatedKey(spelled, activationId),
    // The id of the store: a key of another seller is good here, too.
    productKey: meta?.store_id ?? '',
    buyerEmail: meta?.customer_email ?? '',
    uses: 0,
    enabled: true,
    createdAt: parseForeignDate((instance ?? key)?.created_at) ?? 0,
    expiresAt: endOf(parseForeignDate(key?.expires_at), now),
    extra,
  };
  return { value };
}

/** When a key ends that has not, in whole seconds. A key that the store finds good after its end was renewed. */
function endOf(expiresAt: number | null, now: number): number | null {
  return expiresAt === null || expiresAt <= now ? null : Math.floor(expiresAt / 1000) * 1000;
}

/**
 * What Lemon Squeezy would answer to a validate now: what it last answered, or that the key has ended since. Null: it has not
 * said anything.
 */
export function validateAnswer(license: License): Answer | null {
  const { extra = {}, enabled } = license;
  const { [statusName]: status = 200, ...document } = extra;
  if (typeof document['valid'] !== 'boolean') return null;
  if (license.status === 'expired' && document['valid']) {
    const ended = { ...keyIn(extra), status: 'expired' };
    return { status: 200, body: { ...document, valid: false, error: texts.expired, license_key: ended } };
  }
  // The store found it good, so it was deactivated here.
  if (!enabled && isGood(extra)) return refusal('validate', texts.noInstance);
  return { status: Number(status), body: document };
}

/** Whether the store has found a license key good. */
function isGood(extra: LicenseExtra): boolean {
  return extra['valid'] === true && goodStatuses.has(textOf(keyIn(extra)['status']));
}

/** Whether an instance was deactivated, here or at the store. */
export function isDeactivated({ extra = {}, enabled }: License): boolean {
  return extra['error'] === texts.noInstance || (!enabled && isGood(extra));
}

/** The answer to a deactivate. Before the store has answered it, one activation less is in use than it last said. */
export function deactivateAnswer({ extra = {} }: License): Answer {
  const key = keyIn(extra);
  const usage = key['activation_usage'];
  const isCounted = extra['valid'] !== true;
  const left = typeof usage === 'number' && !isCounted ? Math.max(0, usage - 1) : usage;
  const status = left === 0 && key['status'] === 'active' ? 'inactive' : key['status'];
  const shown = {
    ...key,
    ...(status !== undefined && { status }),
    ...(left !== undefined && { activation_usage: left }),
  };
  return {
    status: 200,
    body: { deactivated: true, error: null, license_key: shown, meta: extra['meta'] ?? null },
  };
}

/** The id of a license key, by which the seller’s API lists its instances; null: it is not known. */
export function keyIdOf({ extra = {} }: Pick<License, 'extra'>): number | null {
  const { id: keyId } = keyIn(extra);
  return typeof keyId === 'number' ? keyId : null;
}

function keyIn(extra: LicenseExtra): JsonObject {
  return isObject(extra['license_key']) ? extra['license_key'] : {};
}

/** A no of a call. */
export function refusal(call: CallName, error: string): Answer {
  return {
    status: 404,
    body: { [verdicts[call]]: false, error, license_key: null, instance: null, meta: null },
  };
}

/** What is stored of an instance that the store does not know. */
export const goneInstance: LicenseExtra = {
  ...refusal('validate', texts.noInstance).body,
  [statusName]: 404,
};

/** What is wrong with the parameters of a call, in the words of the store’s framework. */
function invalid(names: readonly string[]): Answer {
  const errors = Object.fromEntries(
    names.map((name) => [name, [`The ${name.replaceAll('_', ' ')} field is required.`]]),
  );
  const [first = ['']] = Object.values(errors);
  const others = names.length - 1;
  const more = others === 0 ? '' : ` (and ${others} more error${others === 1 ? '' : 's'})`;
  return { status: 422, body: { message: `${first[0]}${more}`, errors } };
}

const instances = z.object({
  data: z.array(z.object({ attributes: z.object({ identifier: z.string(), name: text, created_at: date }) })),
});

/** An instance in the list of the seller’s API. `createdAt`: epoch ms. */
export type ListedInstance = { id: string; name: string; createdAt: number };

/** Reads the list of the instances of a license key (JSON:API). */
export function readInstances(body: JsonObject): Parsed<readonly ListedInstance[]> {
  const reading = read(instances, body);
  if ('fault' in reading) return reading;
  return {
    value: reading.value.data.map(({ attributes: { identifier, name, created_at: at } }) => ({
      id: identifier,
      name,
      createdAt: parseForeignDate(at) ?? 0,
    })),
  };
}

export const callAnswer = z.looseObject({ error: z.string().nullable() }).meta({ id: 'LemonSqueezyAnswer' });
export const refusalAnswer = z.looseObject({}).meta({ id: 'LemonSqueezyRefusal' });

const sent = z.unknown().optional();

/** The parameters of each call. Nothing is refused here: what is wrong with one is said as the store does. */
export const callParameters = parameters(
  {
    license_key: sent,
    instance_name: sent.describe('Of an activate: what the buyer calls the installation.'),
    instance_id: sent.describe('The instance that an activate has made.'),
  },
  { id: 'LemonSqueezyCall' },
);

type Sent = Partial<ValuesOf<typeof callParameters>>;

/** What a call is about; null: it is not sent. */
export type Call = { licenseKey: string; instanceId: string | null; instanceName: string | null };

const required: Readonly<Record<CallName, readonly string[]>> = {
  validate: ['license_key'],
  activate: ['license_key', 'instance_name'],
  deactivate: ['license_key', 'instance_id'],
};

/** Reads a call; or the answer to one that lacks a parameter. */
export function readCall(values: Sent, call: CallName): Call | Answer {
  const found: Readonly<Record<string, string | null>> = {
    license_key: textIn(values.licenseKey),
    instance_id: textIn(values.instanceId),
    instance_name: textIn(values.instanceName),
  };
  const absent = required[call].filter((name) => found[name] === null);
  if (absent.length > 0) return invalid(absent);
  const {
    license_key: licenseKey,
    instance_id: instanceId = null,
    instance_name: instanceName = null,
  } = found;
  return { licenseKey: licenseKey ?? '', instanceId, instanceName };
}

/** The framework trims texts, and takes an empty one for none. */
function textIn(value: unknown): string | null {
  const sentText = typeof value === 'number' ? String(value) : textOf(value).trim();
  return sentText === '' ? null : sentText;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The key under which the license of a call is stored; null: nothing can have it. */
export function keyOfCall(licenseKey: string, instanceId: string | null): string | null {
  const parsed = parseLicenseKey(licenseKey);
  if (parsed === null || partsOfKey(parsed).activationId !== null) return null;
  return instanceId === null ? parsed : activatedKey(parsed, instanceId);
}

/** The form of a validate or a deactivate. */
export function writeKey(storedKey: string): Record<string, string> {
  const { licenseKey, activationId } = partsOfKey(storedKey);
  return { license_key: licenseKey, ...(activationId !== null && { instance_id: activationId }) };
}

/** The form of an activate. */
export function writeActivation({
  licenseKey,
  name,
}: Pick<Activation, 'licenseKey' | 'name'>): Record<string, string> {
  return { license_key: licenseKey, instance_name: name };
}
