export const mask = '***';

/** A secret that is never printed by accident: as text and as JSON it is `***`, and `inspect` does not show it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return mask;
  }

  toJSON(): string {
    return mask;
  }
}
