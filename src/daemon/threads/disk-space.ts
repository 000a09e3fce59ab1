import type { MessagePort } from 'node:worker_threads';
import type { Ballast } from '../../store/sqlite/ballast.ts';
import type { DiskSpaceMessage } from './writer-message.ts';

/** How often a full disk is looked at again, in ms. */
const lookAgainMs = 1000;

/** Tells over the port when the disk is full, and takes the ballast again as soon as there is room. */
export class DiskSpaceWatch implements Disposable {
  readonly #port: MessagePort;
  readonly #ballast: Ballast;
  #timer: NodeJS.Timeout | null = null;

  constructor(port: MessagePort, ballast: Ballast) {
    this.#port = port;
    this.#ballast = ballast;
  }

  /** Takes the ballast and says how it is: the writer is ready. */
  begin(): void {
    if (this.#ballast.take()) this.#tell(false);
    else this.look();
  }

  /** Looks whether the ballast had to be given back. */
  look(): void {
    if (this.#ballast.isTaken || this.#timer !== null) return;
    this.#tell(true);
    this.#timer = setInterval(() => {
      if (!this.#ballast.take()) return;
      this[Symbol.dispose]();
      this.#tell(false);
    }, lookAgainMs);
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #tell(isFull: boolean): void {
    const message: DiskSpaceMessage = { isFull };
    this.#port.postMessage(message);
  }
}
