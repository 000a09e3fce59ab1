import { createHash } from 'node:crypto';
import type { Value } from './source.ts';

/** How many rows a table has, and the SHA-256 of them all in the order of their key, in hexadecimal. */
export type Contents = { rows: number; sha256: string };

/** So many rows are hashed together. */
const hashedTogether = 500;

/** Adds up what a table contains, row by row. */
export class ContentsSum {
  readonly #hash = createHash('sha256');
  #lines = '';
  #rows = 0;

  add(row: readonly Value[]): void {
    this.#lines += `${JSON.stringify(row)}\n`;
    this.#rows += 1;
    if (this.#rows % hashedTogether === 0) this.#flush();
  }

  end(): Contents {
    this.#flush();
    return { rows: this.#rows, sha256: this.#hash.digest('hex') };
  }

  #flush(): void {
    this.#hash.update(this.#lines);
    this.#lines = '';
  }
}
