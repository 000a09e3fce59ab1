import { lstatSync, readFileSync } from 'node:fs';
import type { Server } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { formatReason } from '../config/errors.ts';
import { listenSocket, reopenSocket, type SocketPlace, ListenError } from '../http/listen.ts';
import type { Log } from '../service/ports.ts';

type OpenSocket = { server: FastifyInstance; place: SocketPlace; file: string | null };

/** The Unix sockets of this process. Creates the file of a socket again after it was removed. */
export class UnixSockets implements AsyncDisposable {
  readonly #log: Log;
  readonly #sockets: OpenSocket[] = [];
  readonly #reopened: Server[] = [];
  readonly #lost = new Set<string>();
  #checked: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(log: Log) {
    this.#log = log;
  }

  async listen(server: FastifyInstance, place: SocketPlace): Promise<void> {
    await listenSocket(server, place);
    this.#sockets.push({ server, place, file: fileAt(place.path) });
  }

  /** The paths of sockets to which connections fail. */
  get lost(): readonly string[] {
    return [...this.#lost];
  }

  /**
   * Checks that each file is the one that was created, and creates missing files again; then calls `next`. Does nothing
   * after it was disposed of.
   */
  async check(next: () => void): Promise<void> {
    this.#checked = this.#checkAfter(this.#checked, next);
    await this.#checked;
  }

  async #checkAfter(before: Promise<void>, next: () => void): Promise<void> {
    await before;
    await this.#checkAll();
    if (!this.#isClosing) next();
  }

  async #checkAll(): Promise<void> {
    for (const socket of this.#sockets) {
      if (this.#isClosing) return;
      const { path } = socket.place;
      const found = fileAt(path);
      if (found !== null && found === socket.file) this.#lost.delete(path);
      else if (found === null) await this.#reopen(socket);
      else this.#report(path, 'another file is in its place');
    }
  }

  async #reopen(socket: OpenSocket): Promise<void> {
    const { server, place } = socket;
    try {
      this.#reopened.push(await reopenSocket(server, place));
      socket.file = fileAt(place.path);
      this.#lost.delete(place.path);
      this.#log.warn({ socket: place.path }, 'the file of a socket was removed: created again');
    } catch (error) {
      this.#report(place.path, formatReason(error));
    }
  }

  /** Logs a lost socket once, although it is checked repeatedly. */
  #report(path: string, error: string): void {
    if (this.#lost.has(path)) return;
    this.#lost.add(path);
    const hint = 'restore its directory, or restart this process';
    this.#log.error(
      { socket: path, error, hint },
      'the file of a socket was removed: connections to it fail',
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    await this.#checked;
    for (const server of this.#reopened) server.close();
  }
}

/** Identifies the file at a path; null if there is none. A later file may have the same inode. */
function fileAt(path: string): string | null {
  try {
    const { dev, ino, birthtimeMs } = lstatSync(path);
    return [dev, ino, birthtimeMs].join();
  } catch {
    return null;
  }
}

/**
 * The number of a group that is given by name or number. Node cannot query directory services: a group that is not in
 * /etc/group has to be given by its number.
 */
export function groupNumber(group: string): number {
  if (/^\d{1,10}$/.test(group)) return Number(group);
  for (const line of readGroups().split('\n')) {
    const [name, , number = ''] = line.split(':');
    if (name === group && /^\d+$/.test(number)) return Number(number);
  }
  throw new ListenError('refused', `there is no group ${group} in /etc/group: give its number instead`);
}

function readGroups(): string {
  try {
    return readFileSync('/etc/group', 'utf8');
  } catch {
    return '';
  }
}
