import { createHash } from 'node:crypto';
import type {
  Activation,
  Lease,
  LeaseRequest,
  SignedRequest,
  UseTotals,
} from '../../../../src/features/leases/domain/lease.ts';
import { defaultLeaseTerms, type LeaseTerms } from '../../../../src/domain/catalogue.ts';
import type { License } from '../../../../src/domain/license.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import type { AnsweredRequest, LeaseCommand } from '../../../../src/features/leases/service/answer.ts';
import { buildRequest, thumbprint } from './activation-builders.ts';
import {
  AgentHarness,
  day,
  Harness,
  key,
  productKey,
  valueOf,
} from '../../../support/harness/service-harness.ts';

let signatures = 0;

/** A request as its device signs it. Two requests are never the same. */
export function signed(device: string, request: LeaseRequest): SignedRequest {
  signatures += 1;
  const digest = createHash('sha256').update(String(signatures)).digest('hex');
  return { request, device, digest };
}

/** Something that answers the signed requests of devices. */
export type Issuer = {
  answer(request: SignedRequest, limits?: Partial<LeaseCommand>): Promise<Result<AnsweredRequest>>;
};

/** A device that numbers its requests. It sends each request once, and gets its answer. */
export class Device {
  readonly thumbprint: string;
  readonly #issuer: Issuer;
  /** The number of its last request. */
  seq = 0;
  uses: UseTotals = { recorded: 0, returned: 0 };

  constructor(issuer: Issuer, name: string) {
    this.#issuer = issuer;
    this.thumbprint = thumbprint(name);
  }

  /** Signs the next request, and does not send it. */
  sign(act: LeaseRequest['act'], changes: Partial<LeaseRequest> = {}): SignedRequest {
    const { seq, uses } = this;
    return signed(this.thumbprint, buildRequest({ act, seq: seq + 1, uses, ...changes }));
  }

  async ask(
    act: LeaseRequest['act'],
    changes: Partial<LeaseRequest> = {},
    limits: Partial<LeaseCommand> = {},
  ): Promise<Result<AnsweredRequest>> {
    const request = this.sign(act, changes);
    const result = await this.#issuer.answer(request, limits);
    if (result.ok) this.seq = request.request.seq;
    return result;
  }

  /** Asks for a lease and gets one. */
  async lease(
    act: 'take' | 'renew' = 'take',
    changes: Partial<LeaseRequest> = {},
    limits: Partial<LeaseCommand> = {},
  ): Promise<Lease> {
    const { answer } = valueOf(await this.ask(act, changes, limits));
    if (answer.kind !== 'lease') throw new Error(`no lease: ${JSON.stringify(answer)}`);
    return answer.lease;
  }
}

/** What a result says, in one word: a state of a notice, a code of a refusal, or `lease`. */
export function saidIn(result: Result<AnsweredRequest>): string {
  if (!result.ok) return result.problem.code;
  const { answer } = result.value;
  if (answer.kind === 'lease') return 'lease';
  return answer.kind === 'notice' ? answer.notice.state : answer.problem.code;
}

/** An authority that has sold a license. */
export class IssuingAuthority extends Harness implements Issuer {
  keyNotAfter: number = this.now + 400 * day;

  async open(terms: Partial<LeaseTerms> = {}): Promise<this> {
    const start = { adminTokenDigest: 'd', place: 'here', apiKeyDigest: 'digest' };
    valueOf(await this.writer.write('startAuthority', start));
    await this.addProduct(productKey);
    await this.sell(key);
    // Not as a seller: a term may be shorter than the usual time until a renewal.
    this.setTerms(terms);
    return this;
  }

  async addProduct(name: string, accountId = 'default'): Promise<void> {
    const command = { name, recurring: false, accountId, productKey: name, secret: null };
    valueOf(await this.writer.write('addProduct', command));
  }

  async sell(licenseKey: string, of = productKey): Promise<void> {
    const sale = { buyerEmail: 'a@example.com', soldAt: null, uses: 0, enabled: true };
    valueOf(await this.writer.write('addPurchase', { ...sale, productKey: of, licenseKey }));
  }

  setTerms(terms: Partial<LeaseTerms>): void {
    const product = this.store.products.get(productKey);
    if (product === null) throw new Error('there is no product');
    this.store.products.put({ ...product, leaseTerms: { ...defaultLeaseTerms, ...terms } });
  }

  async setEnabled(isEnabled: boolean): Promise<void> {
    const tenant = { accountId: 'default', productKey: null };
    const trigger = isEnabled ? 'enable' : 'disable';
    valueOf(await this.writer.write('changeLicense', { tenant, licenseKey: key, trigger }));
  }

  device(name: string): Device {
    return new Device(this, name);
  }

  async answer(
    signedRequest: SignedRequest,
    limits: Partial<LeaseCommand & { accountId: string | null }> = {},
  ): Promise<Result<AnsweredRequest>> {
    const { keyNotAfter } = this;
    const usual = { keyNotAfter, until: null, isFile: false, accountId: null };
    return await this.writer.write(
      'answerLeaseRequest',
      { signedRequest, ...usual, ...limits },
      { actor: 'device' },
    );
  }

  get license(): License {
    const license = this.store.licenses.get(key);
    if (license === null) throw new Error('there is no license');
    return license;
  }

  /** The activation of a device. */
  activation(device: Device): Activation {
    const activation = this.store.activations.ofDevice(key, device.thumbprint);
    if (activation === null) throw new Error('the device has no activation');
    return activation;
  }

  async endActivation(device: Device): Promise<Activation> {
    const { activationId } = this.activation(device);
    return valueOf(await this.writer.write('endActivation', { activationId, accountId: null }));
  }

  async blockActivation(device: Device): Promise<Activation> {
    const { activationId } = this.activation(device);
    return valueOf(await this.writer.write('blockActivation', { activationId, accountId: null }));
  }

  /** Everything that a request can change. */
  contents(): unknown {
    const { store } = this;
    return {
      license: this.license,
      activations: store.activations.list({}, { limit: 100, offset: 0 }),
      history: store.history.list(key, { limit: 100, offset: 0 }),
      audit: store.audit.list({}, { limit: 100, offset: 0 }),
    };
  }
}

/** An agent that issues leases and has read the key. */
export class IssuingAgent extends AgentHarness {
  terms: LeaseTerms = defaultLeaseTerms;
  productId: string = productKey;

  async open(terms: Partial<LeaseTerms> = {}, license: { enabled?: boolean } = {}): Promise<this> {
    this.terms = { ...this.terms, ...terms };
    await this.start();
    await this.read(this.says(5, license));
    return this;
  }

  device(name: string): Device {
    return new Device({ answer: (request, limits) => this.issue(request, limits) }, name);
  }

  async issue(
    signedRequest: SignedRequest,
    limits: Partial<LeaseCommand> = {},
  ): Promise<Result<AnsweredRequest>> {
    const { terms, freshness, maxPending, productId } = this;
    const usual = { keyNotAfter: this.now + 400 * day, until: null, isFile: false };
    const command = { signedRequest, ...usual, terms, freshness, maxPending, productId, ...limits };
    const result = await this.writer.write('answerAgentLeaseRequest', command, { actor: 'device' });
    this.check();
    return result;
  }
}
