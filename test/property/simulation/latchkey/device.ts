import { defaultLeaseTerms } from '../../../../src/domain/catalogue.ts';
import { dueAt, heldVerdict, type HeldVerdict } from '../../../../src/features/leases/domain/held-lease.ts';
import type { LeaseAnswer, SignedRequest } from '../../../../src/features/leases/domain/lease.ts';
import {
  agentLeaseService,
  authorityLeaseService,
  type LeaseService,
} from '../../../../src/features/leases/service/services.ts';
import { StorageError } from '../../../../src/service/ports.ts';
import { HolderModel } from '../../../features/leases/property/holder-model.ts';
import type { VirtualClock, VirtualTime } from '../../../support/harness/virtual-clock.ts';
import { freshness } from '../machine.ts';
import { productKey, type SimulatedAuthority } from './authority.ts';
import type { Site } from './site.ts';

/** What a device needs of the world around it. */
type Surroundings = { time: VirtualTime; clock: VirtualClock; authority: SimulatedAuthority };

/** Longer than any lease. */
const keyMs = 400 * 86_400_000;
const nobody = { actor: null, requestId: null, idempotency: null };
/** For how long a device waits for an answer, in ms. */
const patienceMs = 60_000;
const forEver = new AbortController().signal;

/**
 * A device with a lease, and a program on it. The rules of the holder and the services of the issuer are the real ones;
 * nothing is signed. `issuer`: null: the authority.
 */
export class Device {
  readonly name: string;
  readonly issuer: Site | null;
  readonly clock: VirtualClock;
  /** Nothing of this device arrives at the issuer. */
  isAway = false;
  readonly holder: HolderModel;
  readonly #world: Surroundings;

  constructor(
    world: Surroundings,
    { name, issuer, licenseKey }: { name: string; issuer: Site | null; licenseKey: string },
  ) {
    this.name = name;
    this.issuer = issuer;
    this.clock = world.time.clock({ wall: world.clock.now() });
    this.holder = new HolderModel(name, licenseKey, productKey);
    this.#world = world;
  }

  /** What the holder says from the lease alone. */
  held(): HeldVerdict {
    return heldVerdict(this.holder.held, this.clock.now());
  }

  /** What a program is told: the issuer is asked first if that is due. */
  async verify(): Promise<HeldVerdict> {
    await this.ask();
    return this.held();
  }

  /**
   * Makes the request that is due or that may bring a lease, and takes over its answer; null: there is none. `isEarly`: renews
   * a lease that is not due, as the answer to a request that waits at the issuer does.
   */
  async ask({ isEarly = false }: { isEarly?: boolean } = {}): Promise<LeaseAnswer | null> {
    const { held } = this.holder;
    const isDue = isEarly || held.document?.kind !== 'lease' || dueAt(held) <= this.clock.now();
    if (!isDue && this.held().verdict === 'answer') return null;
    const request = this.holder.request({ isAsked: true, replaces: null, now: this.clock.now() });
    if (request === null || this.isAway) return null;
    const ending = new AbortController();
    const late = this.clock.sleep(patienceMs, ending.signal).then(
      () => null,
      () => null,
    );
    const result = await Promise.race([this.#deliver(request).catch(failed), late]);
    ending.abort();
    if (result === null) return null;
    this.holder.receive(request, result);
    if (!result.ok) return null;
    const { answer } = result.value;
    if (answer.kind === 'lease') this.clock.learn(answer.lease.issuedAt);
    return answer;
  }

  async #deliver(signedRequest: SignedRequest): Promise<Awaited<ReturnType<LeaseService['answer']>> | null> {
    const { clock } = this.issuer ?? this.#world;
    // As an issuer does (features/leases/issuer/issuer.ts).
    if (clock.status().suspect) return null;
    const leases = this.#leases();
    const prepared = await leases.prepare(signedRequest, { requester: 'device', signal: forEver });
    if (!prepared.ok) return prepared;
    const keyNotAfter = this.#world.clock.now() + keyMs;
    const command = { signedRequest, keyNotAfter, until: null, isFile: false };
    return await leases.answer(command, null, nobody);
  }

  #leases(): LeaseService {
    const { authority, clock } = this.#world;
    if (this.issuer === null) {
      const write = authority.write.bind(authority);
      return authorityLeaseService(authority.machine.transaction, { write }, clock);
    }
    const { agent, machine } = this.issuer;
    return agentLeaseService({
      reader: machine.transaction,
      writer: agent.writer,
      clock: this.issuer.clock,
      licenseService: agent.licenseService,
      fetcher: agent.sync.fetcher,
      productIdOf: (key) => agent.products.idOf(key),
      termsOf: () => defaultLeaseTerms,
      settings: () => ({ freshness, maxPending: 10_000 }),
      wake: () => undefined,
    });
  }
}

/** The request gets no answer, and is repeated. */
function failed(error: unknown): null {
  if (error instanceof StorageError) return null;
  throw error;
}
