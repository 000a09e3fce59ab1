import { Socket } from 'node:net';
import { Client } from 'pg';
import type { Clock, Random } from '../../service/ports.ts';
import { clientConfig, deadlines, type DatabaseAddress } from './client.ts';
import type { Names } from './names.ts';

/** How long another try to listen is waited for, in ms; up to half of it more or less. */
const retryMs = 1_000;
/** How often a connection on which nothing comes is asked whether it still stands, in ms. */
const askMs = 5_000;

export type NoticeParts = {
  /** Where to listen: not through a pooler that lends a connection for one transaction only. */
  address: DatabaseAddress;
  names: Pick<Names, 'channel'>;
  clock: Pick<Clock, 'sleep'>;
  random: Pick<Random, 'draw'>;
  /** Another node has changed what is remembered, or may have while nobody listened. */
  onNotice: () => unknown;
  /** Called when nothing is heard any more, and with null when it is again. */
  onHearing: (error: unknown) => unknown;
};

/** Listens for the notices of other nodes, on a connection of its own, which is made anew whenever it is lost. */
export class Notices implements AsyncDisposable {
  readonly #parts: NoticeParts;
  readonly #ended = new AbortController();
  readonly #listening: Promise<void>;
  #isHearing = true;

  constructor(parts: NoticeParts) {
    this.#parts = parts;
    this.#listening = this.#listen();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#listening;
  }

  async #listen(): Promise<void> {
    const { clock, random } = this.#parts;
    const { signal } = this.#ended;
    while (!signal.aborted) {
      const error = await this.#hear(signal).catch((reason: unknown) => reason);
      if (signal.aborted) return;
      this.#tell(error);
      await clock.sleep(retryMs * (0.5 + random.draw()), signal).catch(() => undefined);
    }
  }

  /** Listens on one connection until it is lost; gives or throws why. */
  async #hear(signal: AbortSignal): Promise<unknown> {
    const { address, names, clock, onNotice } = this.#parts;
    const socket = new Socket();
    const client = new Client({ ...clientConfig(address), ...deadlines(askMs), stream: () => socket });
    const lost = new AbortController();
    client.on('error', (error) => lost.abort(error));
    client.on('end', () => lost.abort());
    client.on('notification', () => onNotice());
    const ending = AbortSignal.any([signal, lost.signal]);
    try {
      await client.connect();
      await client.query(`SET idle_session_timeout = 0; LISTEN ${names.channel}`);
      // What was changed before that has told nobody here.
      onNotice();
      this.#tell(null);
      while (!ending.aborted) {
        await clock.sleep(askMs, ending).catch(() => undefined);
        if (!ending.aborted) await client.query('SELECT 1');
      }
      return lost.signal.reason;
    } finally {
      client.end().catch(() => undefined);
      // Where nothing answers any more, the driver would wait for it.
      socket.destroySoon();
    }
  }

  #tell(error: unknown): void {
    if ((error === null) === this.#isHearing) return;
    this.#isHearing = error === null;
    this.#parts.onHearing(error);
  }
}
