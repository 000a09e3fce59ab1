import { setImmediate as turn } from 'node:timers/promises';
import type {
  Activation,
  HeldLease,
  KnownSequence,
  Lease,
  LeaseAnswer,
  SignedRequest,
} from '../../../../src/features/leases/domain/lease.ts';
import type { LeaseTerms } from '../../../../src/domain/catalogue.ts';
import { failWith, type Result } from '../../../../src/domain/problem/problem.ts';
import { problems, type ProblemCode } from '../../../../src/domain/problem/problem-table.ts';
import { readRequest, signDocument, type KeyPair } from '../../../../src/features/leases/documents.ts';
import type { LearningClock } from '../../../../src/features/leases/holder/exchanges.ts';
import { Holder, type HolderSettings } from '../../../../src/features/leases/holder/holder.ts';
import { DeviceDocuments } from '../../../../src/features/leases/holder/device-documents.ts';
import { examineStored } from '../../../../src/features/leases/holder/stored-documents.ts';
import { heldLicenseService } from '../../../../src/features/leases/service/held-license.ts';
import { mayWait } from '../../../../src/features/leases/service/services.ts';
import type {
  FileAnswer,
  SignedAnswer,
  SignedSequence,
} from '../../../../src/features/leases/service/ports.ts';
import type { LicenseService } from '../../../../src/service/services.ts';
import type { IssuerReply } from '../../../../src/service/ports.ts';
import {
  serializeLease,
  serializeNotice,
  serializeSequence,
  serializeStatement,
} from '../../../../src/features/leases/wire/lease.ts';
import { serializeProblem } from '../../../../src/wire/response.ts';
import { keyPair, leaseIssuer } from './lease-builders.ts';
import { IssuingAuthority } from './lease-harness.ts';
import { day, Harness, key, productKey, valueOf } from '../../../support/harness/service-harness.ts';
import type { VirtualClock, VirtualTime } from '../../../support/harness/virtual-clock.ts';

/** The keys of a vendor, and the rules of an authority, behind a network that a test can cut. */
export class FakeIssuer implements AsyncDisposable {
  readonly authority = new IssuingAuthority();
  root: KeyPair;
  signing: KeyPair;
  readonly time: VirtualTime;
  version = 1;
  /** `away`: nothing arrives. `lost`: requests arrive, and no answer does. */
  network: 'up' | 'away' | 'lost' = 'up';
  /** Changes an answer on its way. */
  tamper: (answer: SignedAnswer) => SignedAnswer = (answer) => answer;
  /** Refuses every request with this problem, and carries none out; null: does not. */
  refuse: ProblemCode | null = null;
  /** The documents that have arrived, with the seconds of `Prefer: wait`. */
  readonly received: { document: string; waitS: number }[] = [];
  /** How many requests are under way, how many were at most, and how many were sent, also in vain. */
  open = 0;
  mostOpen = 0;
  attempts = 0;

  private constructor(time: VirtualTime, root: KeyPair, signing: KeyPair) {
    this.time = time;
    this.root = root;
    this.signing = signing;
  }

  static async start(time: VirtualTime, terms: Partial<LeaseTerms> = {}): Promise<FakeIssuer> {
    const issuer = new FakeIssuer(time, await keyPair(), await keyPair());
    await issuer.authority.open(terms);
    return issuer;
  }

  /** Time has passed. */
  #now(): void {
    const passed = this.time.monotonic - this.#at;
    this.#at = this.time.monotonic;
    this.authority.pass(passed);
  }
  #at = 0;

  async statement(): Promise<string> {
    const notAfter = this.authority.keyNotAfter;
    const claims = {
      issuer: leaseIssuer,
      version: this.version,
      keys: [{ jwk: this.signing.jwk, notAfter }],
    };
    return await signDocument('keys', serializeStatement(claims), this.root);
  }

  async send(
    document: string,
    { waitS, signal }: { waitS: number; signal: AbortSignal },
  ): Promise<IssuerReply> {
    this.attempts += 1;
    if (this.network === 'away') return { kind: 'failed', detail: 'the network is cut' };
    this.open += 1;
    this.mostOpen = Math.max(this.mostOpen, this.open);
    try {
      this.received.push({ document, waitS });
      const reply = await this.#answer(document, waitS, signal);
      return this.network === 'lost' ? { kind: 'failed', detail: 'the answer is lost' } : reply;
    } finally {
      this.open -= 1;
    }
  }

  async #answer(document: string, waitS: number, signal: AbortSignal): Promise<IssuerReply> {
    if (this.refuse !== null) return refusal(failWith(this.refuse, 'It is refused.'));
    const read = await readRequest(document, leaseIssuer);
    if (!read.ok) return refusal(read);
    const until = this.time.monotonic + waitS * 1000;
    const clock = this.time.clock();
    for (;;) {
      this.#now();
      if (waitS === 0 || (await mayWait(this.authority.store, read.value, this.authority.now)) === null)
        break;
      if (this.time.monotonic >= until)
        return { kind: 'answered', status: 204, body: null, retryAfterS: null };
      await clock.sleep(100, signal).catch(() => undefined);
      if (signal.aborted) return { kind: 'failed', detail: 'aborted' };
    }
    this.#now();
    const answered = await this.authority.answer(read.value);
    if (!answered.ok) return refusal(await this.#signed(answered, read.value));
    const { answer } = answered.value;
    if (answer.kind === 'refused') return refusal({ ok: false, problem: answer.problem });
    const signed = await this.#sign(answer, read.value);
    return { kind: 'answered', status: 200, body: { data: this.tamper(signed) }, retryAfterS: null };
  }

  async lease(lease: Lease, { digest }: Pick<SignedRequest, 'digest'>): Promise<SignedAnswer> {
    const claims = serializeLease(lease, leaseIssuer, digest);
    return { lease: await signDocument('lease', claims, this.signing), keys: await this.statement() };
  }

  async #sign(
    answer: Exclude<LeaseAnswer, { kind: 'refused' }>,
    request: SignedRequest,
  ): Promise<SignedAnswer> {
    if (answer.kind === 'lease') return await this.lease(answer.lease, request);
    const claims = serializeNotice(answer.notice, leaseIssuer, request.digest);
    return { notice: await signDocument('notice', claims, this.signing), keys: await this.statement() };
  }

  async sequence(known: KnownSequence, { digest }: SignedRequest): Promise<SignedSequence> {
    const claims = serializeSequence(known, leaseIssuer, { digest, now: this.authority.now });
    const sequence = await signDocument('sequence', claims, this.signing);
    return { sequence, keys: await this.statement() };
  }

  /** The same problem; `out_of_sequence` with signed documents. */
  async #signed({ problem }: Refused, request: SignedRequest): Promise<Refused> {
    const { known } = problem;
    if (known === undefined) return { ok: false, problem };
    return { ok: false, problem: { ...problem, signed: await this.sequence(known, request) } };
  }

  /** Answers a request that came as a file. */
  async answerFile(document: string, until: number | null = null): Promise<FileAnswer> {
    const request = valueOf(await readRequest(document, leaseIssuer));
    this.#now();
    const answered = await this.authority.answer(request, { until, isFile: true });
    if (!answered.ok && answered.problem.known !== undefined)
      return await this.sequence(answered.problem.known, request);
    const { answer } = valueOf(answered);
    if (answer.kind === 'refused') throw new Error(answer.problem.code);
    return await this.#sign(answer, request);
  }

  activation({ device }: HeldDevice): Activation {
    const activation = this.authority.store.activations.ofDevice(key, device.kid);
    if (activation === null) throw new Error('the device has no activation');
    return activation;
  }

  async endActivation(device: HeldDevice): Promise<void> {
    const { activationId } = this.activation(device);
    valueOf(await this.authority.writer.write('endActivation', { activationId, accountId: null }));
  }

  async blockActivation(device: HeldDevice): Promise<void> {
    const { activationId } = this.activation(device);
    valueOf(await this.authority.writer.write('blockActivation', { activationId, accountId: null }));
  }

  /** The store is that of an earlier backup, in which the device is unknown. */
  forget(device: HeldDevice): void {
    const activation = this.activation(device);
    const { store, license } = this.authority;
    const { recorded, returned } = activation.uses;
    store.licenses.setState({ ...license, uses: license.uses - recorded + returned }, false);
    store.activations.put({ ...activation, seq: 0, digest: '', uses: { recorded: 0, returned: 0 }, rev: 1 });
  }

  /** An answer with the keys of this issuer in the name of another one. */
  async forge(victim: FakeIssuer): Promise<{ lease: string; keys: string }> {
    const [last] = victim.received.slice(-1);
    const request = valueOf(await readRequest(last?.document ?? '', leaseIssuer));
    const { answer } = valueOf(await victim.authority.answer(request));
    if (answer.kind !== 'lease') throw new Error('there is no lease');
    const { lease } = answer;
    const longer = { ...lease, rev: lease.rev + 10 ** 9, expiresAt: lease.expiresAt + day };
    const forged = await this.lease(longer, request);
    if (!('lease' in forged)) throw new Error('there is no lease');
    return forged;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.authority[Symbol.asyncDispose]();
  }
}

type Refused = Extract<Result<never>, { ok: false }>;

function refusal({ problem }: Refused): IssuerReply {
  const { status } = problems[problem.code];
  return {
    kind: 'answered',
    status,
    body: serializeProblem(problem, 'r'),
    retryAfterS: problem.retryAfterS ?? null,
  };
}

/** Its methods, which a spread does not copy. */
function clockOf(clock: VirtualClock): Pick<LearningClock, 'now' | 'monotonic' | 'sleep' | 'learn'> {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    learn: (date) => clock.learn(date),
  };
}

const tenant = { accountId: 'default', productKey: null };

/** A holder in this thread, on a store of its own. */
export class HeldDevice extends Harness {
  readonly issuer: FakeIssuer;
  readonly time: VirtualTime;
  device: KeyPair;
  clock: VirtualClock;
  settings: HolderSettings = { activate: 'on_verify', productKeys: [productKey], misses: 1000 };
  name: string | null = 'laptop';
  readonly lines: Record<string, unknown>[] = [];
  #running: {
    holder: Holder;
    service: LicenseService;
    lifetime: AbortController;
    loop: Promise<void>;
  } | null = null;

  private constructor(issuer: FakeIssuer, device: KeyPair, clock: VirtualClock) {
    super();
    this.issuer = issuer;
    this.time = issuer.time;
    this.device = device;
    this.clock = clock;
  }

  static async start(
    issuer: FakeIssuer,
    settings: Partial<HolderSettings> = {},
    clock: VirtualClock = issuer.time.clock(),
  ): Promise<HeldDevice> {
    const device = new HeldDevice(issuer, await keyPair(), clock);
    device.settings = { ...device.settings, ...settings };
    return await device.run();
  }

  /** Starts the process on its store. Without `loop`, nothing happens by itself. */
  async run({ loop = false }: { loop?: boolean } = {}): Promise<this> {
    const log =
      (level: string) =>
      (fields: Record<string, unknown>, message: string): void => {
        this.lines.push({ ...fields, level, message });
      };
    valueOf(await this.writer.write('startHolder', { adminTokenDigest: 'd', place: 'here' }));
    const lifetime = new AbortController();
    const { store: reader, clock } = this;
    // The writer of the harness has a manual clock.
    const writer = {
      write: (async (...args: Parameters<typeof this.writer.write>) => {
        this.now = this.clock.now();
        this.monotonic = this.clock.monotonic();
        return await this.writer.write(...args);
      }) as typeof this.writer.write,
    };
    const documents = new DeviceDocuments(this.device, {
      issuer: leaseIssuer,
      roots: [this.issuer.root.jwk],
      random: { bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) },
    });
    const trust = { roots: [this.issuer.root.jwk], device: this.device.kid };
    const { statementFault, corrections } = await examineStored(reader, trust);
    const hasOtherRoots = statementFault !== null;
    const binding = { issuer: leaseIssuer, device: this.device.kid, hasOtherRoots };
    valueOf(await this.writer.write('bindIssuer', binding));
    for (const each of corrections) valueOf(await this.writer.write('correctHeldLease', each));
    const holder = new Holder({
      reader,
      writer,
      clock: { ...clockOf(clock), mark: () => ({ at: clock.now(), isConfirmed: true }) },
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      documents,
      send: (document, options) => this.issuer.send(document, options),
      deviceName: () => this.name,
      settings: () => this.settings,
      fraction: () => 1,
      lifetime: lifetime.signal,
    });
    const productKeys = (): readonly string[] => this.settings.productKeys;
    const service = heldLicenseService({ reader, writer, clock, leases: holder, productKeys });
    const running = loop ? holder.renewals.run(lifetime.signal) : Promise.resolve();
    this.#running = { holder, service, lifetime, loop: running };
    return this;
  }

  /** Another process on a copy of the state directory. */
  async copy(): Promise<HeldDevice> {
    const copy = new HeldDevice(this.issuer, this.device, this.time.clock());
    await copy.run();
    for (const held of this.store.heldLeases.all()) copy.store.heldLeases.put(held);
    return copy;
  }

  /** Makes the request that is due, as the loop does; or a renewal. */
  async renew(): Promise<void> {
    await this.holder.renewals.exchange(key, () => ({ act: 'renew' }));
  }

  /** Ends the process as a crash does. */
  async crash(): Promise<void> {
    const { lifetime, loop } = this.#parts;
    lifetime.abort(new Error('crashed'));
    await loop.catch(() => undefined);
    this.reopen();
    this.#running = null;
  }

  get #parts() {
    if (this.#running === null) throw new Error('the holder does not run');
    return this.#running;
  }

  get holder(): Holder {
    return this.#parts.holder;
  }

  get service(): LicenseService {
    return this.#parts.service;
  }

  get signal(): AbortSignal {
    return this.#parts.lifetime.signal;
  }

  get held(): HeldLease {
    const held = this.store.heldLeases.get(key);
    if (held === null) throw new Error('nothing is held');
    return held;
  }

  /** What a verify says, in one line. */
  async verify(licenseKey = key): Promise<string> {
    const verified = await this.service.verify(tenant, licenseKey, this.signal);
    if (!verified.ok) return verified.problem.code;
    const { license, provenance } = verified.value;
    return `${license.enabled ? 'enabled' : 'disabled'} ${license.uses} ${provenance.freshness}`;
  }

  async change(trigger: 'usage' | 'decrease' | 'enable' | 'disable', licenseKey = key): Promise<string> {
    const request = { tenant, licenseKey, trigger, actor: 'a', idempotency: null, waitMs: 0 };
    const changed = await this.service.change(request, this.signal);
    return changed.ok ? String(changed.value.license.uses) : changed.problem.code;
  }

  async activate(licenseKey = key, replaces: string | null = null) {
    return await this.holder.activate({ licenseKey, productKey: null, replaces }, this.signal);
  }

  /** Lets time pass in steps until the condition holds. Signatures are made meanwhile, in threads. */
  async until(holds: () => boolean | Promise<boolean>, stepMs = 500): Promise<void> {
    for (let step = 0; step < 5_000; step += 1) {
      if (await holds()) return;
      await this.settle();
      await this.time.advance(stepMs);
    }
    throw new Error('the condition did not hold in time');
  }

  /** Gives signatures some time: also on a busy machine, each turn waits for the threads that make them. */
  async settle(): Promise<void> {
    for (let turns = 0; turns < 20; turns += 1) {
      await crypto.subtle.digest('SHA-256', new Uint8Array(1));
      await turn();
    }
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#running?.lifetime.abort(new Error('over'));
    await this.#running?.loop.catch(() => undefined);
    await super[Symbol.asyncDispose]();
  }
}
