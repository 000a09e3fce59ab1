import { runUseCase } from '../../../service/run.ts';
import type { Reader, Transaction } from '../../../service/tables.ts';
import type { CommandOf, CommandResult, UseCaseName } from '../../../service/writer.ts';
import { checkpoint, openWriting } from '../../../store/sqlite/connection.ts';
import { openStore } from '../../../store/sqlite/files/open.ts';
import { sha256, systemRandom } from '../../../daemon/system/machine.ts';
import type { Result } from '../../../domain/problem/problem.ts';
import type { RoleName } from '../../../domain/role.ts';

/** Something that happens at an instant (epoch ms). */
export type DemoEvent = { at: number; run: (at: number) => Promise<unknown> };

/** When something happens (epoch ms), and the credential that does it. */
export type Moment = { at: number; actor?: string };

type ValueOf<Name extends UseCaseName> = CommandResult<Name> extends Result<infer Value> ? Value : never;

/** Runs use cases as if at an earlier time, which the caller sets, on a store that no daemon has open. */
export class PastWriter {
  readonly #transaction: Transaction;

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
  }

  get reader(): Reader {
    return this.#transaction;
  }

  /** Throws if the use case refuses. */
  async run<Name extends UseCaseName>(
    name: Name,
    command: CommandOf<Name>,
    { at, actor }: Moment,
  ): Promise<ValueOf<Name>> {
    const context = { now: at, monotonic: at, random: systemRandom, digest: sha256, recordsHistory: true };
    const writeOptions = { actor: actor ?? null };
    const result = await runUseCase(this.#transaction, { name, command, writeOptions }, context);
    if (!result.ok) throw new Error(`${name}: ${result.problem.detail}`);
    return result.value as ValueOf<Name>;
  }
}

/** Fills a store in one transaction. The daemon of the store must have stopped. */
export async function fillStore<Value>(
  { directory, role }: { directory: string; role: RoleName },
  fill: (writer: PastWriter) => Promise<Value>,
): Promise<Value> {
  using store = openStore({ directory });
  using connection = openWriting(store.databasePath, role);
  connection.database.exec('BEGIN IMMEDIATE');
  const value = await fill(new PastWriter(connection.transaction));
  connection.database.exec('COMMIT');
  checkpoint(connection);
  return value;
}

/** Numbers that look random and are the same each time, so that each sandbox shows the same customers. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A number in [0, 1): xorshift with 32 bits. */
  fraction(): number {
    let next = this.#state;
    next ^= next << 13;
    next ^= next >>> 17;
    next ^= next << 5;
    this.#state = next >>> 0;
    return this.#state / 2 ** 32;
  }

  /** A whole number from `from` to `to`. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.fraction() * (to - from + 1));
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.whole(0, items.length - 1)] ?? items[0];
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.whole(0, 255));
  }
}
