import { SeededRandom } from '../seeded-random.ts';

/** Its UUIDs are of version 7, as `/sync/v1` demands. */
export class Uuid7Random extends SeededRandom {
  #made = 0;

  override uuid(now: number): string {
    this.#made += 1;
    const time = now.toString(16).padStart(12, '0');
    const count = this.#made.toString(16).padStart(12, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${count}`;
  }
}
