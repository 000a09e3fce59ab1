import { deepStrictEqual, ok } from 'node:assert';
import { createHash } from 'node:crypto';
import type {
  Activation,
  KnownSequence,
  SignedRequest,
  UseTotals,
} from '../../../../src/features/leases/domain/lease.ts';
import { defaultLeaseTerms, type LeaseTerms } from '../../../../src/domain/catalogue.ts';
import type { License } from '../../../../src/domain/license.ts';
import { type Result, isFailure } from '../../../../src/domain/problem/problem.ts';
import type { AnsweredRequest } from '../../../../src/features/leases/service/answer.ts';
import { runUseCase } from '../../../../src/service/run.ts';
import type { CommandOf, CommandResult, UseCaseName } from '../../../../src/service/writer.ts';
import {
  account,
  at,
  createTestStore,
  product,
  type TestStore,
} from '../../../support/builders/store-builders.ts';
import { HolderModel, type HolderState } from './holder-model.ts';
import { isCounted, LeaseLaws, type Known } from './laws.ts';
import { authorityRole, key, usesBefore, type IssuerRole } from './roles.ts';

const keyMs = 400 * 86_400_000;

/** Where a request or its answer gets lost. */
export type Fate = 'arrives' | 'request lost' | 'answer lost' | 'answer late';

export type Action =
  | { do: 'pass'; ms: number }
  /** `isAsked`: a program wants a lease. `replaces`: counts the devices with a seat. */
  | { do: 'ask'; device: number; isAsked: boolean; replaces: number | null; fate: Fate }
  | { do: 'use'; device: number; uses: UseTotals }
  | { do: 'want'; device: number; wanted: 'active' | 'ended' }
  | { do: 'replay'; index: number; isHeard: boolean }
  | { do: 'hear late'; index: number }
  | { do: 'operate'; device: number; name: 'endActivation' | 'blockActivation' }
  | { do: 'enable'; isEnabled: boolean }
  | { do: 'terms'; terms: Partial<LeaseTerms> }
  | { do: 'copy holder'; device: number }
  | { do: 'restore holder'; device: number }
  | { do: 'back up issuer' }
  | { do: 'restore issuer' };

type Sent = { holder: HolderModel; request: SignedRequest };
type Backup = { activations: Activation[]; license: License; known: Known };

/** One store for all runs of a test: opening a store takes longer than a run. */
export function openLeaseStore(): TestStore {
  const store = createTestStore();
  const { database, transaction } = store.writing;
  database.exec('PRAGMA synchronous = OFF');
  transaction.accounts.add(account, 'digest');
  transaction.products.add(product, 'digest');
  transaction.settings.set('log_key', 'secret');
  return store;
}

/**
 * An issuer on a real store with a fake clock, and devices that ask it through a network that loses, repeats and reorders.
 * `LeaseLaws` checks each step.
 */
export class LeaseWorld {
  now: number = at;
  readonly holders: readonly HolderModel[];
  readonly laws: LeaseLaws;
  readonly #store: TestStore;
  readonly #role: IssuerRole;
  #terms: LeaseTerms = defaultLeaseTerms;
  #termsChanges = 0;
  #backup: Backup | null = null;
  readonly #copies = new Map<HolderModel, HolderState>();
  /** All requests that were ever sent. */
  readonly #sent: Sent[] = [];
  readonly #late: (Sent & { result: Result<AnsweredRequest> })[] = [];
  #ids = 0;

  constructor(store: TestStore, devices: number, roleOf = authorityRole) {
    this.#store = store;
    this.#role = roleOf(store);
    this.#role.reset(this.now);
    this.holders = Array.from({ length: devices }, (_, index) => new HolderModel(`device-${index}`, key));
    this.laws = new LeaseLaws(usesBefore);
  }

  async act(action: Action): Promise<void> {
    if (action.do === 'pass') this.now += action.ms;
    else if ('device' in action) await this.#actOfDevice(action);
    else if (action.do === 'replay') await this.#replay(action);
    else if (action.do === 'hear late') this.#hearLate(action.index);
    else if (action.do === 'enable') this.#role.setEnabled(action.isEnabled, this.now);
    else if (action.do === 'terms') this.#setTerms(action.terms);
    else if (action.do === 'back up issuer') this.#backUpIssuer();
    else this.#restoreIssuer();
    this.laws.check(this.rows(), this.#license(), this.now);
  }

  async #actOfDevice(action: Extract<Action, { device: number }>): Promise<void> {
    const holder = this.#holder(action.device);
    if (action.do === 'ask') await this.#ask(holder, action);
    else if (action.do === 'want') holder.want(action.wanted);
    else if (action.do === 'copy holder') this.#copies.set(holder, holder.state);
    else if (action.do === 'restore holder') this.#restoreHolder(holder);
    else if (action.do === 'operate') {
      const activationId = this.#rowOf(holder)?.activationId ?? 'none';
      await this.#write(action.name, { activationId, accountId: null });
    } else if (holder.held.document?.kind === 'lease') {
      // A holder counts only with a lease.
      holder.use(action.uses);
      this.laws.recorded(holder.device, action.uses);
    }
  }

  /** Copies the whole state directory of a device, with its key. Both copies go on. */
  copy(from: number, to: number): void {
    const [original, copy] = [this.#holder(from), this.#holder(to)];
    copy.state = original.state;
    copy.device = original.device;
    // The histories of both are interrupted by the other, each time.
    for (let left = 3; left > 0; left -= 1) this.laws.interrupted(original.device);
  }

  /** Lets everything arrive until no device has anything to say. */
  async comeToRest(): Promise<void> {
    await this.act({ do: 'enable', isEnabled: true });
    for (const [device, holder] of this.holders.entries()) {
      // Each device speaks at least once: the issuer may have been restored since.
      const isSilent = !holder.hasSomethingToSay && holder.nextAct === null;
      const ask = { do: 'ask', device, isAsked: false, replaces: null, fate: 'arrives' } as const;
      let left = 12;
      do {
        left -= 1;
        await this.act(ask);
      } while (left > 0 && holder.hasSomethingToSay);
      ok(left > 0, `${holder.name} does not come to rest`);
      const row = this.#rowOf(holder);
      if (isSilent) this.laws.stayedSilent(holder, row?.uses ?? null);
      else if (row !== null && isCounted(row))
        deepStrictEqual(row.uses, holder.held.uses, 'the totals differ');
    }
    this.laws.checkUses(this.rows());
  }

  async #ask(
    holder: HolderModel,
    { isAsked, replaces, fate }: Extract<Action, { do: 'ask' }>,
  ): Promise<void> {
    const others = this.rows().filter((row) => row.device !== holder.device && row.seatUntil > this.now);
    const other = replaces === null ? undefined : others[replaces % Math.max(1, others.length)];
    const request = holder.request({ isAsked, replaces: other?.activationId ?? null, now: this.now });
    if (request === null) return;
    const sent = { holder, request };
    this.#sent.push(sent);
    if (fate === 'request lost') return;
    const result = await this.#deliver(sent);
    if (fate === 'arrives') this.#hear(sent, result);
    if (fate === 'answer late') this.#late.push({ ...sent, result });
  }

  async #replay({ index, isHeard }: Extract<Action, { do: 'replay' }>): Promise<void> {
    const sent = this.#sent[index % Math.max(1, this.#sent.length)];
    if (sent === undefined) return;
    const { holder, request } = sent;
    const wasCarriedOut = this.laws.known.carriedOut.has(request.digest);
    const before = this.#contents();
    const result = await this.#deliver(sent);
    if (wasCarriedOut) deepStrictEqual(this.#contents(), before, 'a replayed request has changed something');
    else if (result.ok && !holder.isWaitingFor(request)) this.laws.interrupted(holder.device);
    if (isHeard) this.#hear(sent, result);
  }

  async #deliver({ holder, request }: Sent): Promise<Result<AnsweredRequest>> {
    const { seats } = this.#terms;
    const before = this.#rowOf(holder);
    const mayKeepSeat = this.#termsChanges > 1 && before?.state === 'active' && before.seatUntil > this.now;
    const command = { signedRequest: request, keyNotAfter: this.now + keyMs, until: null, isFile: false };
    const result = await this.#role.answer(command, (name, written) => this.#write(name, written));
    this.laws.answered(holder.device, {
      request,
      result,
      rows: this.rows(),
      seats,
      mayKeepSeat,
      knownUntil: this.#role.knownUntil(),
      now: this.now,
    });
    return result;
  }

  #hear({ holder, request }: Sent, result: Result<AnsweredRequest>): void {
    if (!result.ok && result.problem.code === 'out_of_sequence' && holder.isWaitingFor(request)) {
      const { uses } = result.problem.known as KnownSequence;
      this.laws.continued(holder, uses);
    }
    holder.receive(request, result);
  }

  #hearLate(index: number): void {
    const [late] = this.#late.splice(index % Math.max(1, this.#late.length), 1);
    if (late !== undefined) this.#hear(late, late.result);
  }

  #restoreHolder(holder: HolderModel): void {
    const copy = this.#copies.get(holder);
    if (copy === undefined) return;
    this.laws.holderRestored(holder, this.#rowOf(holder)?.uses ?? null);
    holder.state = copy;
  }

  #backUpIssuer(): void {
    this.#backup = { activations: this.rows(), license: this.#license(), known: this.laws.known };
  }

  #restoreIssuer(): void {
    if (this.#backup === null) return;
    const { activations, license, known } = this.#backup;
    this.laws.issuerRestored(this.holders, this.rows(), { activations, known });
    const { database, transaction } = this.#store.writing;
    database.exec('DELETE FROM activation');
    for (const row of activations) transaction.activations.put(row);
    this.#role.restore(license);
    // It takes longer than the documents of one device can be ahead of the clock.
    this.now += 1_000;
  }

  async #write<Name extends UseCaseName>(name: Name, command: CommandOf<Name>): Promise<CommandResult<Name>> {
    const { database, transaction } = this.#store.writing;
    const random = {
      bytes: (count: number) => new Uint8Array(count),
      uuid: () => `id-${(this.#ids += 1)}`,
      fraction: () => 0.5,
    };
    const digest = (secret: string): string => createHash('sha256').update(secret).digest('hex');
    const context = { now: this.now, monotonic: this.now, random, digest, recordsHistory: false };
    database.exec('BEGIN');
    const result = await runUseCase(transaction, { name, command, writeOptions: {} }, context);
    database.exec(isFailure(result) ? 'ROLLBACK' : 'COMMIT');
    return result;
  }

  #setTerms(terms: Partial<LeaseTerms>): void {
    this.#termsChanges += 1;
    this.#terms = { ...this.#terms, ...terms };
    this.#role.setTerms(this.#terms);
  }

  #holder(index: number): HolderModel {
    const holder = this.holders[index % this.holders.length];
    if (holder === undefined) throw new Error('there is no device');
    return holder;
  }

  rows(): Activation[] {
    return this.#store.writing.transaction.activations.ofLicense(key, 1_000);
  }

  #rowOf({ device }: HolderModel): Activation | null {
    return this.#store.writing.transaction.activations.ofDevice(key, device);
  }

  #license(): License {
    return this.#role.license();
  }

  #contents(): unknown {
    return { rows: this.rows(), license: this.#license() };
  }
}
