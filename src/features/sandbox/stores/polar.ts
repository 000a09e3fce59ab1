import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import {
  activationObject,
  customerOf,
  licenseObject,
  type PolarActivation,
  type PolarLicense,
  type PolarStatus,
} from './polar-objects.ts';
import { faultsOf, invalid, isEqual, readBody, uuidOf, type Sent } from './polar-parameters.ts';
import { StandIn, type StandInAnswer, type StandInCall, type StandInPage } from './stand-in.ts';

/*
 * A stand-in for Polar's license keys. It follows the order of checks, the texts and the limits of Polar's own server
 * (polarsource/polar, server/polar/license_key/service.py, schemas.py and rate_limit.py), and has nothing in common with the
 * client of an agent. Polar locks the row of a key while it validates or activates; here nothing comes in between either.
 */

export interface PolarSale {
  readonly licenseKey: string;
  readonly email?: string;
  readonly status?: PolarStatus;
  readonly usage?: number;
  readonly limitUsage?: number | null;
  readonly limitActivations?: number | null;
  /** Epoch ms; null: never. */
  readonly expiresAt?: number | null;
  readonly lateMs?: number;
}

type CallName = 'validate' | 'activate' | 'deactivate' | 'read';

type Call = StandInCall<CallName>;

function refused(error: string, detail: string, status: number): StandInAnswer {
  return { status, body: { error, detail } };
}

const notFound = (detail = 'Not found'): StandInAnswer => refused('ResourceNotFound', detail, 404);
const notPermitted = (detail: string): StandInAnswer => refused('NotPermitted', detail, 403);

const path =
  /^\/v1\/(?:(?:customer-portal\/)?license-keys\/(validate|activate|deactivate)|license-keys\/([0-9a-f-]{36}))$/;

/** Three requests a second of one caller; whoever asks more often is blocked for a minute. */
const limit = { requests: 3, withinMs: 1_000, blockMs: 60_000 };

/** Counts do not exceed the range of the column. */
const maxUsage = 2 ** 31 - 1;

export class PolarStore extends StandIn<CallName, PolarLicense> {
  readonly organizationId: string;
  /** The access token of the organization. */
  readonly accessToken: string;
  /** Whether the rate of callers is limited. */
  isLimited = true;
  protected override readonly keyParameter = 'key';
  protected override readonly noRoute: StandInAnswer = { status: 404, body: { detail: 'Not Found' } };
  /** Shorter than the minute of Polar. */
  protected override readonly limited: StandInPage = {
    status: 429,
    headers: { 'retry-after': '1' },
    body: '',
  };
  #recent: number[] = [];
  #blockedUntil = 0;

  constructor(
    organizationId: string,
    { accessToken = 'polar_oat_sandbox', now }: { accessToken?: string; now?: () => number } = {},
  ) {
    super(now);
    this.organizationId = organizationId;
    this.accessToken = accessToken;
  }

  sell({ licenseKey, email = 'buyer@example.com', lateMs = 0, ...sale }: PolarSale): void {
    const now = this.now();
    this.sold.set(licenseKey, {
      id: randomUUID(),
      licenseKey,
      benefitId: '32a8eda4-56cf-4a94-8228-792d324a519e',
      customer: customerOf(email, this.organizationId, now),
      createdAt: now,
      activations: [],
      status: 'granted',
      usage: 0,
      limitUsage: null,
      limitActivations: null,
      validations: 0,
      lastValidatedAt: null,
      expiresAt: null,
      shownFrom: now + lateMs,
      ...sale,
    });
  }

  protected nameOf(method: string, called: string): CallName | null {
    const [, name, id] = path.exec(called) ?? [];
    if (name !== undefined) return method === 'POST' ? (name as CallName) : null;
    return id !== undefined && method === 'GET' ? 'read' : null;
  }

  /** Keys are compared exactly. */
  protected fold(licenseKey: string): string {
    return licenseKey;
  }

  protected override async parametersOf(
    { headers }: IncomingMessage,
    body: Buffer,
  ): Promise<StandInCall['parameters']> {
    return readBody(body.toString(), headers['content-type'] ?? '');
  }

  protected carryOut(call: Call): StandInAnswer {
    const isPublic = call.path.includes('/customer-portal/');
    const blockedS = isPublic ? this.#limit() : 0;
    if (blockedS > 0) return { status: 429, body: null, headers: { 'retry-after': String(blockedS) } };
    const [, token] = /^Bearer (.+)$/i.exec(call.headers.authorization ?? '') ?? [];
    if (token !== undefined && token !== this.accessToken)
      return { status: 401, body: { error: 'invalid_token', error_description: 'The token is invalid.' } };
    if (!isPublic && token === undefined) return refused('Unauthorized', 'Unauthorized', 401);
    if (call.name === 'read') return this.#read(call.path.slice(-36));
    const faults = faultsOf(call.name, call.parameters);
    if (faults.length > 0) return invalid(faults);
    const sent = call.parameters as Sent;
    const license = this.find(sent.key);
    if (license === null || uuidOf(sent.organization_id) !== this.organizationId) return notFound();
    if (call.name === 'deactivate') return deactivate(license, sent);
    return call.name === 'activate' ? this.#activate(license, sent) : this.#validate(license, call);
  }

  /** For how many seconds the caller is blocked; 0: the call is let through. */
  #limit(): number {
    const now = this.now();
    if (!this.isLimited) return 0;
    if (now < this.#blockedUntil) return Math.ceil((this.#blockedUntil - now) / 1_000);
    this.#recent = this.#recent.filter((at) => at > now - limit.withinMs);
    if (this.#recent.length < limit.requests) {
      this.#recent.push(now);
      return 0;
    }
    this.#blockedUntil = now + limit.blockMs;
    return limit.blockMs / 1_000;
  }

  #read(licenseId: string): StandInAnswer {
    const license = [...this.sold.values()].find(({ id }) => id === licenseId);
    if (license === undefined || this.find(license.licenseKey) === null) return notFound();
    const activations = license.activations.map((each) => activationObject(license, each));
    return { status: 200, body: { ...licenseObject(license, this.organizationId), activations } };
  }

  #isExpired({ expiresAt }: PolarLicense): boolean {
    return expiresAt !== null && this.now() >= expiresAt;
  }

  #validate(license: PolarLicense, call: Call): StandInAnswer {
    const sent = call.parameters as Sent;
    if (license.status !== 'granted') return notFound('License key is no longer active.');
    if (this.#isExpired(license)) return notFound('License key has expired.');
    let activation: PolarActivation | undefined;
    if (sent.activation_id) {
      activation = activationIn(license, sent.activation_id);
      if (activation === undefined) return notFound();
      const isBound = Object.keys(activation.conditions).length > 0;
      if (isBound && !isEqual(sent.conditions ?? {}, activation.conditions))
        return notFound('License key does not match required conditions');
    }
    if (sent.benefit_id && uuidOf(sent.benefit_id) !== license.benefitId)
      return notFound('License key does not match given benefit.');
    if (sent.customer_id && uuidOf(sent.customer_id) !== license.customer.id)
      return notFound('License key does not match given user.');
    const by = Number(sent.increment_usage ?? 0);
    if (by > 0 && license.limitUsage) {
      const left = license.limitUsage - license.usage;
      if (by > left) return refused('BadRequest', `License key only has ${left} more usages.`, 400);
    }
    if (license.usage + by > maxUsage) return { status: 500, body: null };
    license.usage += by;
    license.validations += 1;
    license.lastValidatedAt = this.now();
    call.counted = by;
    const shown = activation === undefined ? null : activationObject(license, activation);
    return { status: 200, body: { ...licenseObject(license, this.organizationId), activation: shown } };
  }

  #activate(license: PolarLicense, sent: Sent): StandInAnswer {
    if (license.status !== 'granted')
      return notPermitted('License key is no longer active. This license key can not be activated.');
    if (this.#isExpired(license)) return notPermitted('License key has expired.');
    if (!license.limitActivations)
      return notPermitted(
        'This license key does not support activations. Use the /validate endpoint instead to check license validity.',
      );
    if (license.activations.length >= license.limitActivations)
      return notPermitted('License key activation limit already reached');
    const activation: PolarActivation = {
      id: randomUUID(),
      label: sent.label ?? '',
      conditions: sent.conditions ?? {},
      meta: sent.meta ?? {},
      createdAt: this.now(),
    };
    license.activations = [...license.activations, activation];
    const shown = licenseObject(license, this.organizationId);
    return { status: 200, body: { ...activationObject(license, activation), license_key: shown } };
  }
}

function deactivate(license: PolarLicense, sent: Sent): StandInAnswer {
  const activation = activationIn(license, sent.activation_id ?? '');
  if (activation === undefined) return notFound();
  license.activations = license.activations.filter((each) => each !== activation);
  return { status: 204, body: null };
}

function activationIn({ activations }: PolarLicense, id: string): PolarActivation | undefined {
  return activations.find((each) => each.id === uuidOf(id));
}
