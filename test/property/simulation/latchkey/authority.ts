import { createHash } from 'node:crypto';
import type { Dispatcher } from 'undici';
import { lazyChangeFeed } from '../../../../src/features/following/daemon/process.ts';
import { idempotencyKeyHeader } from '../../../../src/domain/header-names.ts';
import type { License } from '../../../../src/domain/license.ts';
import { isFailure } from '../../../../src/domain/problem/problem.ts';
import { authorityCredentials, TokenUses } from '../../../../src/service/access/credential.ts';
import {
  authorityCheckoutService,
  authorityCouponService,
  authorityLicenseService,
} from '../../../../src/service/authority/services.ts';
import { runUseCase } from '../../../../src/service/run.ts';
import type { LicenseChangeRequest } from '../../../../src/service/services.ts';
import {
  Announcer,
  type CommandOf,
  type CommandResult,
  type UseCaseName,
  type Writer,
} from '../../../../src/service/writer.ts';
import { localWriter } from '../../../../src/store/sqlite/commit.ts';
import type { VirtualClock } from '../../../support/harness/virtual-clock.ts';
import { silent } from '../../../support/silent-log.ts';
import { Machine } from '../machine.ts';
import { Books, carryOut } from './books.ts';
import type { Uuid7Random } from './random.ts';
import { Served, type Answering, type Response } from './served.ts';

export const productKey = 'PRESS';
/** Another product of the same account, which has one license. */
export const other = {
  productKey: 'OTHER',
  licenseKey: 'OTHER-KEY',
  secret: 'the secret of the other product',
};
const nobody = { actor: null, requestId: null, idempotency: null };

/** Corruptions of an authority. */
export type AuthoritySabotage = {
  writer?: (writer: Writer, machine: Machine) => Writer;
  /** Called at each restart. */
  beforeStart?: (machine: Machine) => void;
};

/** The process of an authority. `end` ends its requests. */
type Process = { writer: Writer; changes: Announcer; served: Served; end: AbortController };

/** A real authority: its use cases, its routes, and its tables on SQLite in memory. */
export class SimulatedAuthority implements Answering, Disposable {
  /** The secret of the product. */
  secret = 'the secret of the product, number 1';
  /** The API key of the account. */
  apiKey = 'the key of the account, number 1';
  restores = 0;
  /** When another history of the store began, and when another store took its place (ms of virtual time). */
  historySince = 0;
  storeSince = 0;
  machine: Machine = new Machine();
  books: Books;
  readonly #clock: VirtualClock;
  readonly #random: Uuid7Random;
  readonly #sabotage: AuthoritySabotage;
  readonly #purchases = new Map<string, string>();
  #process: Process;
  #backup: { bytes: Uint8Array; secret: string; apiKey: string } | null = null;

  constructor(clock: VirtualClock, random: Uuid7Random, sabotage: AuthoritySabotage = {}) {
    this.#clock = clock;
    this.#random = random;
    this.#sabotage = sabotage;
    this.books = this.#openBooks(true);
    this.#process = this.#begin('');
  }

  /** `keys`: license keys, with their counts to begin with. */
  async begin(keys: ReadonlyMap<string, number>): Promise<void> {
    await this.#start(digest(this.apiKey));
    const product = { recurring: false, accountId: 'default' };
    await this.write('addProduct', { ...product, name: 'Press', productKey, secret: this.secret });
    const { licenseKey: otherKey, ...second } = other;
    await this.write('addProduct', { ...product, name: 'Other', ...second });
    for (const [licenseKey, uses] of keys) await this.#sell(productKey, licenseKey, uses);
    await this.#sell(other.productKey, otherKey, 0);
  }

  license(key: string): License {
    const license = this.machine.transaction.licenses.get(key);
    if (license === null) throw new Error(`there is no ${key}`);
    return license;
  }

  /** The seller refunds the license, or another program changes it. */
  async changeElsewhere(key: string, trigger: LicenseChangeRequest['trigger'] | 'refund'): Promise<void> {
    const tenant = { accountId: 'default', productKey };
    if (trigger === 'refund')
      await this.write('refundPurchase', { purchaseId: this.#purchases.get(key) ?? '' });
    else await this.write('changeLicense', { tenant, licenseKey: key, trigger });
  }

  /** A use case that no agent asks for. */
  async write<Name extends UseCaseName>(name: Name, command: CommandOf<Name>): Promise<CommandResult<Name>> {
    const { writer, changes } = this.#process;
    const result = await writer.write(name, command, nobody);
    changes.announce(['anything']);
    return result;
  }

  /** Removes what is too old, as maintenance does. */
  async prune(removalTime: number = this.#clock.now()): Promise<void> {
    for (let removed = Infinity; removed > 0;) {
      const pruned = await this.write('pruneIdempotency', { removalTime, limit: 1_000 });
      removed = pruned.ok ? pruned.value.removed : 0;
    }
  }

  backUp(): void {
    const { secret, apiKey } = this;
    this.#backup = { bytes: this.machine.backup(), secret, apiKey };
  }

  /** What agents have delivered since would be too old to be sent again. */
  forgetBackup(): void {
    this.#backup = null;
  }

  /** The process ends, and another one starts. */
  async restart(): Promise<void> {
    this.#process.end.abort();
    this.#sabotage.beforeStart?.(this.machine);
    this.#process = this.#begin('');
    await this.#start(null);
  }

  async restore(): Promise<void> {
    if (this.#backup === null) return;
    this.#replaceStore(this.#backup.bytes);
    this.secret = this.#backup.secret;
    this.apiKey = this.#backup.apiKey;
    this.restores += 1;
    this.historySince = this.#clock.reading().monotonic;
    await this.write('restore', {});
    await this.#start(null);
  }

  /** Another store with the same licenses takes the place of this one, as after an import. */
  async becomeAnotherStore(): Promise<void> {
    this.#replaceStore(this.machine.backup());
    this.#backup = null;
    const { database } = this.machine;
    database.exec('DELETE FROM idempotency');
    database
      .prepare("UPDATE setting SET value = ? WHERE name = 'sync_epoch'")
      .run(digest(String(this.#random.fraction())).slice(0, 32));
    this.historySince = this.#clock.reading().monotonic;
    this.storeSince = this.historySince;
    await this.write('restore', {});
    await this.#start(null);
  }

  /** Rotates the secret of the product, and the API key. */
  rotate(): void {
    const next = Number(/\d+$/.exec(this.secret)?.[0]) + 1;
    this.secret = `the secret of the product, number ${next}`;
    this.apiKey = `the key of the account, number ${next}`;
    const { products, accounts } = this.machine.transaction;
    products.setSecretDigest(productKey, digest(this.secret));
    accounts.setKeyDigest('default', digest(this.apiKey));
  }

  async handle(request: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<Response | null> {
    const { served, changes, end } = this.#process;
    const operation = headerOf(request, idempotencyKeyHeader);
    const isAnswered = typeof request.body === 'string' && request.body.includes('answered_at');
    const ends = AbortSignal.any([signal, end.signal]);
    try {
      const response = await carryOut({ operation, isAnswered }, () => served.answer(request, ends));
      changes.announce(['anything']);
      return end.signal.aborted ? null : response;
    } catch (error) {
      if (ends.aborted) return null;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#process.end.abort();
    this.machine[Symbol.dispose]();
  }

  #replaceStore(bytes: Uint8Array): void {
    this.#process.end.abort();
    this.machine[Symbol.dispose]();
    this.machine = new Machine(1, bytes);
    this.books = this.#openBooks(false);
    this.#process = this.#begin('');
  }

  #openBooks(isNew: boolean): Books {
    return new Books(this.machine.database, isNew, () => this.#clock.reading().monotonic);
  }

  #begin(instance: string): Process {
    const { machine } = this;
    const reader = machine.transaction;
    const clock = this.#clock;
    const random = this.#random;
    const honest = localWriter(machine, {
      run: runUseCase,
      isFailure,
      context: () => ({
        now: clock.now(),
        monotonic: clock.monotonic(),
        random,
        digest,
        recordsHistory: false,
      }),
    });
    const writer = this.#sabotage.writer?.(honest, machine) ?? honest;
    const changes = new Announcer();
    const parts = { reader, writer, changes, clock, random, log: silent };
    const changeFeed = lazyChangeFeed(parts);
    const end = new AbortController();
    end.signal.addEventListener('abort', () => changeFeed.stopWaiting());
    const services = {
      role: 'authority' as const,
      instance,
      epoch: () => reader.settings.epoch(),
      licenseService: authorityLicenseService(reader, writer, clock),
      couponService: authorityCouponService(reader, writer),
      checkout: authorityCheckoutService(reader, writer, clock),
      credentials: authorityCredentials({
        reader,
        verifiedNow: () => clock.verified(),
        uses: new TokenUses(),
      }),
      products: null,
      digest,
      changeFeed,
      reader,
      writer,
      changes,
    };
    return { writer, changes, served: new Served(services, clock), end };
  }

  async #start(apiKeyDigest: string | null): Promise<void> {
    const place = { adminTokenDigest: 'token', place: 'here' };
    const started = await this.write('startAuthority', { ...place, apiKeyDigest });
    if (!started.ok) throw new Error(started.problem.detail);
    // The id of the store is known from now on.
    this.#process = this.#begin(started.value.instance);
  }

  async #sell(product: string, licenseKey: string, uses: number): Promise<void> {
    const buyer = { buyerEmail: 'buyer@example.com', soldAt: 0, enabled: true };
    const sold = await this.write('addPurchase', { ...buyer, productKey: product, licenseKey, uses });
    if (!sold.ok) throw new Error(sold.problem.detail);
    this.#purchases.set(licenseKey, sold.value.purchase.purchaseId);
  }
}

export function headerOf({ headers }: Dispatcher.DispatchOptions, name: string): string | null {
  return (headers as Record<string, string>)[name.toLowerCase()] ?? null;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
