/** Does one thing after the other, in the order in which they are asked for. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  async take(act: () => Promise<void>): Promise<void> {
    const done = this.#last.then(act);
    this.#last = done.catch(() => undefined);
    await done;
  }
}
