import { deepStrictEqual, ok } from 'node:assert';
import {
  maxMoves,
  movesWithinMs,
  type Activation,
  type SignedRequest,
  type UseTotals,
} from '../../../../src/features/leases/domain/lease.ts';
import type { License } from '../../../../src/domain/license.ts';
import type { Result } from '../../../../src/domain/problem/problem.ts';
import type { AnsweredRequest } from '../../../../src/features/leases/service/answer.ts';
import type { HolderModel } from './holder-model.ts';

/** A seat that was freed at once, while a lease of its device was valid until `leaseEnd`. */
type Move = { device: string; at: number; leaseEnd: number };

/** What the present history of the issuer has: a restored issuer forgets what came after its backup. */
export type Known = {
  /** The latest end of all leases that each device was ever sent. */
  ends: ReadonlyMap<string, number>;
  moves: readonly Move[];
  /** The digests of the requests that were carried out. */
  carriedOut: ReadonlySet<string>;
};

type Answered = {
  request: SignedRequest;
  result: Result<AnsweredRequest>;
  rows: readonly Activation[];
  /** The number of seats now; null: any number. */
  seats: number | null;
  /** The device had a seat before, and the number of seats has become lower since the start. */
  mayKeepSeat: boolean;
  /** Leases end at this instant (epoch ms) or earlier. */
  knownUntil: number;
  now: number;
};

const components = ['recorded', 'returned'] as const;

/** Whether the issuer has counted all that a device has reported. */
export function isCounted({ state, expiresAt }: Activation): boolean {
  return state !== 'blocked' && expiresAt > 0;
}

/** A number of uses for each device and total. */
class Tally {
  readonly #counts = new Map<string, number>();

  add(device: string, uses: (component: keyof UseTotals) => number): void {
    for (const component of components) {
      const name = `${device} ${component}`;
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + Math.max(0, uses(component)));
    }
  }

  of(device: string, component: keyof UseTotals): number {
    return this.#counts.get(`${device} ${component}`) ?? 0;
  }
}

/**
 * The laws of leases.
 *
 * - Seats: when a device without a valid lease gets one, the devices that have one are at most the seats and the moves
 *   whose lease is still valid. There are at most three moves within 30 days. A device keeps its seat if the number of seats
 *   becomes lower. A restored issuer does not know the leases that it has sent after its backup, so they do not count.
 * - Uses: the count of the license is always the sum of the totals that the issuer has of the devices. Without restores,
 *   this is what the devices have recorded minus returned, once everything has arrived. After a restore of a holder, uses
 *   that the issuer does not have are gone with its state, and uses that its copy had not sent count at most twice. After a restore
 *   of the issuer, each device that still renews sends again what is missing, unless the backup does not have its
 *   activation. What a blocked device reports is not counted, and what a device reports that the issuer has given no
 *   lease is not counted before it has one.
 * - Order: `rev` of the documents of a device rises, also over restores.
 * - Copies: a device is only marked as copied after three interruptions of its history.
 */
export class LeaseLaws {
  known: Known = { ends: new Map(), moves: [], carriedOut: new Set() };
  readonly #usesBefore: number;
  readonly #revs = new Map<string, number>();
  readonly #interruptions = new Map<string, number>();
  readonly #recorded = new Tally();
  /** Uses that a restore may have lost, and uses that may count twice. */
  readonly #lost = new Tally();
  readonly #doubled = new Tally();

  constructor(usesBefore: number) {
    this.#usesBefore = usesBefore;
  }

  /** Call it after each answer of the issuer. */
  answered(device: string, { request, result, rows, seats, mayKeepSeat, knownUntil, now }: Answered): void {
    if (!result.ok || result.unchanged === true) return;
    const { answer } = result.value;
    const carriedOut = new Set([...this.known.carriedOut, request.digest]);
    this.#noteMoves(rows, now);
    this.known = { ...this.known, carriedOut };
    if (answer.kind === 'refused') return;
    const document = answer.kind === 'lease' ? answer.lease : answer.notice;
    const last = this.#revs.get(device) ?? 0;
    ok(document.rev > last, `rev ${document.rev} follows ${last}`);
    this.#revs.set(device, document.rev);
    if (answer.kind !== 'lease') return;
    ok(answer.lease.license.enabled && answer.lease.expiresAt > now, 'the lease is not valid');
    ok(answer.lease.expiresAt <= knownUntil, 'the lease is longer than the license is known');
    const { ends } = this.known;
    const before = ends.get(device) ?? 0;
    const isNew = before <= now && !mayKeepSeat;
    if (isNew && seats !== null) {
      const others = [...ends].filter(([name, end]) => name !== device && end > now).length;
      const moved = new Set(
        this.known.moves.filter(({ leaseEnd }) => leaseEnd > now).map((move) => move.device),
      );
      moved.delete(device);
      ok(others < seats + moved.size, `${others + 1} leases for ${seats} seats and ${moved.size} moves`);
    }
    const end = Math.max(before, answer.lease.expiresAt);
    this.known = { ...this.known, ends: new Map([...ends, [device, end]]) };
  }

  /** Call it after each step. */
  check(rows: readonly Activation[], license: License, now: number): void {
    this.#noteMoves(rows, now);
    for (const { device, seatUntil, copiedAt, expiresAt, uses } of rows) {
      ok(expiresAt > 0 || uses.recorded + uses.returned === 0, `${device} has uses and never had a lease`);
      const hasMoved = this.known.moves.some((move) => move.device === device && move.leaseEnd > now);
      const isValid = (this.known.ends.get(device) ?? 0) > now;
      ok(!isValid || seatUntil > now || hasMoved, `${device} has a lease without a seat or a move`);
      const interruptions = this.#interruptions.get(device) ?? 0;
      ok(copiedAt === null || interruptions >= 3, `${device} is marked after ${interruptions} interruptions`);
    }
    const sum = rows.reduce((total, { uses }) => total + uses.recorded - uses.returned, 0);
    deepStrictEqual(license.uses, this.#usesBefore + sum, 'the count of the license');
  }

  recorded(device: string, uses: UseTotals): void {
    this.#recorded.add(device, (component) => uses[component]);
  }

  interrupted(device: string): void {
    this.#interruptions.set(device, (this.#interruptions.get(device) ?? 0) + 1);
  }

  /** The issuer has sent its own totals. Those that the device did not know may be among those that it sends again. */
  continued({ device, held }: HolderModel, issuer: UseTotals): void {
    ok((this.#interruptions.get(device) ?? 0) > 0, `${device} is out of sequence without an interruption`);
    this.#doubled.add(device, (component) => {
      const pending = held.uses[component] - held.confirmedUses[component];
      return Math.min(pending, issuer[component] - held.confirmedUses[component]);
    });
  }

  /** A device that has given its seat back never speaks again, so a restored issuer does not get its uses again. */
  stayedSilent({ device, held }: HolderModel, issuer: UseTotals | null): void {
    this.#lost.add(device, (component) => held.uses[component] - (issuer?.[component] ?? 0));
  }

  /** Call it before the state of a device is replaced. `issuer`: the totals that the issuer has of the device. */
  holderRestored({ device, held }: HolderModel, issuer: UseTotals | null): void {
    this.interrupted(device);
    const { uses, confirmedUses } = held;
    this.#lost.add(device, (component) => uses[component] - confirmedUses[component]);
    this.#lost.add(device, (component) => confirmedUses[component] - (issuer?.[component] ?? 0));
  }

  /** Call it before the issuer is restored. */
  issuerRestored(
    holders: readonly HolderModel[],
    rows: readonly Activation[],
    backup: { activations: readonly Activation[]; known: Known },
  ): void {
    this.known = backup.known;
    for (const { device, held } of holders) {
      this.interrupted(device);
      const before = rows.find((row) => row.device === device);
      const after = backup.activations.find((row) => row.device === device);
      this.#lost.add(device, (component) => {
        const again =
          after === undefined ? 0 : Math.max(after.uses[component], held.confirmedUses[component]);
        return Math.max(before?.uses[component] ?? 0, held.confirmedUses[component]) - again;
      });
    }
  }

  /** Call it once everything has arrived. */
  checkUses(rows: readonly Activation[]): void {
    for (const row of rows) {
      const { device, uses } = row;
      for (const component of components) {
        const recorded = this.#recorded.of(device, component);
        const least = isCounted(row) ? recorded - this.#lost.of(device, component) : 0;
        const most = recorded + this.#doubled.of(device, component);
        const counted = uses[component];
        ok(counted >= least && counted <= most, `${component}: ${counted}, not ${least} to ${most}`);
      }
    }
  }

  #noteMoves(rows: readonly Activation[], now: number): void {
    for (const { device, movedAt } of rows) {
      const isNow = (move: Move): boolean => move.device === device && move.at === now;
      const isNew = movedAt.filter((moved) => moved === now).length - this.known.moves.filter(isNow).length;
      for (let left = isNew; left > 0; left -= 1) {
        const leaseEnd = this.known.ends.get(device) ?? 0;
        this.known = { ...this.known, moves: [...this.known.moves, { device, at: now, leaseEnd }] };
      }
    }
    const recent = this.known.moves.filter((move) => move.at > now - movesWithinMs);
    ok(recent.length <= maxMoves, `${recent.length} moves within 30 days`);
  }
}
