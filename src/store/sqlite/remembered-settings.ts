import type { SettingTable } from '../../service/tables.ts';

/** Single facts about the store, each read once a transaction: all that is delivered in it asks for the same ones. */
export class RememberedSettings implements SettingTable {
  readonly #table: SettingTable;
  readonly #values = new Map<string, string | null>();

  constructor(table: SettingTable) {
    this.#table = table;
  }

  get(name: string): string | null {
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const value = this.#table.get(name);
    this.#values.set(name, value);
    return value;
  }

  set(name: string, value: string): void {
    this.#table.set(name, value);
    this.#values.set(name, value);
  }

  /** Reads anew from now on: another transaction begins, or something in this one was undone. */
  forget(): void {
    this.#values.clear();
  }
}
