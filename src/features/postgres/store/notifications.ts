import { Socket } from 'node:net';
import { Client } from 'pg';
import type { Clock, Random } from '../../../service/ports.ts';
import { clientConfig, deadlines, type DatabaseAddress } from './client.ts';
import type { Names } from './names.ts';

/** The wait before another try to listen, in ms, ±50 %. */
const retryMs = 1_000;
/** How often the connection is checked, in ms. */
const checkMs = 5_000;

export type NotificationListenerParts = {
  /** Not the address of a pooler that lends a connection for one transaction only. */
  address: DatabaseAddress;
  names: Pick<Names, 'channel'>;
  clock: Pick<Clock, 'sleep'>;
  random: Pick<Random, 'fraction'>;
  /**
   * Called when a node has changed records: the license with this key, or credentials and products (null). Called with
   * null as well when this node begins to listen, because it may have missed notifications of any kind.
   */
  onNotification: (licenseKey: string | null) => unknown;
  /** Called with the error when listening fails, and with null when it works again. */
  onListening: (error: unknown) => unknown;
};

/** Listens for the notifications of other nodes on a separate connection, and reconnects if it is lost. */
export class NotificationListener implements AsyncDisposable {
  readonly #parts: NotificationListenerParts;
  readonly #ended = new AbortController();
  readonly #listening: Promise<void>;
  #isListening = true;

  constructor(parts: NotificationListenerParts) {
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
      const error = await this.#listenOnce(signal).catch((reason: unknown) => reason);
      if (signal.aborted) return;
      this.#report(error);
      await clock.sleep(retryMs * (0.5 + random.fraction()), signal).catch(() => undefined);
    }
  }

  /** Listens on one connection until it is lost; returns or throws the reason. */
  async #listenOnce(signal: AbortSignal): Promise<unknown> {
    const { address, names, clock, onNotification } = this.#parts;
    const socket = new Socket();
    const client = new Client({ ...clientConfig(address), ...deadlines(checkMs), stream: () => socket });
    const lost = new AbortController();
    client.on('error', (error) => lost.abort(error));
    client.on('end', () => lost.abort());
    client.on('notification', ({ payload = '' }) => onNotification(payload === '' ? null : payload));
    const ending = AbortSignal.any([signal, lost.signal]);
    try {
      await client.connect();
      await client.query(`SET idle_session_timeout = 0; LISTEN ${names.channel}`);
      // This node has missed earlier notifications.
      onNotification(null);
      this.#report(null);
      while (!ending.aborted) {
        await clock.sleep(checkMs, ending).catch(() => undefined);
        if (!ending.aborted) await client.query('SELECT 1');
      }
      return lost.signal.reason;
    } finally {
      client.end().catch(() => undefined);
      // The driver would wait for a server that no longer answers.
      socket.destroySoon();
    }
  }

  #report(error: unknown): void {
    if ((error === null) === this.#isListening) return;
    this.#isListening = error === null;
    this.#parts.onListening(error);
  }
}
