import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { instanceHeader, requestIdHeader } from '../../domain/header-names.ts';
import type { Digest } from '../../service/ports.ts';

/** The response to an agent also has the history of the store. */
const agentName = instanceHeader.toLowerCase();

/** The name of `X-Request-Id` in lower case. */
export const requestIdName: string = requestIdHeader.toLowerCase();

/** Headers that may differ between requests with the same response. None of them can be an alias of a credential. */
const ignoredNames: ReadonlySet<string> = new Set([requestIdName, 'traceparent', 'tracestate']);

/** What identifies a request except for its target: a digest of all other headers with their names, order and case. */
export type Fingerprint = {
  readonly rawHeaders: readonly string[];
  /** Where in `rawHeaders` the values of the ignored headers are. */
  readonly ignoredAt: readonly number[];
  /** Where the value of `X-Request-Id` is; -1: it was not sent. */
  readonly requestIdAt: number;
  readonly digest: string;
};

/** The fingerprints of the requests of one listener. */
export class RequestFingerprints {
  readonly #digest: Digest;
  /** The last one of each connection: comparing headers is much cheaper than a digest of them. */
  readonly #last = new WeakMap<Socket, Fingerprint>();

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  /** The fingerprint of a GET request; null if its response cannot be cached. */
  of({ method, httpVersion, rawHeaders, socket }: IncomingMessage): Fingerprint | null {
    if (method !== 'GET' || httpVersion !== '1.1') return null;
    const last = this.#last.get(socket);
    if (last !== undefined && isSame(last, rawHeaders)) return last;
    const fingerprint = this.#make(rawHeaders);
    if (fingerprint !== null) this.#last.set(socket, fingerprint);
    return fingerprint;
  }

  #make(rawHeaders: readonly string[]): Fingerprint | null {
    const names = rawHeaders.map((text, index) => (index % 2 === 0 ? text.toLowerCase() : ''));
    // Not cached: a request with `Expect` (its response may close the connection), with two ids, or of an agent.
    const isUnique = names.indexOf(requestIdName) === names.lastIndexOf(requestIdName);
    if (!isUnique || names.includes('expect') || names.includes(agentName)) return null;
    const ignoredAt = names.flatMap((name, index) => (ignoredNames.has(name) ? [index + 1] : []));
    const compared = rawHeaders.map((text, index) => (ignoredAt.includes(index) ? '' : text));
    const idAt = names.indexOf(requestIdName);
    return {
      rawHeaders,
      ignoredAt,
      requestIdAt: idAt === -1 ? -1 : idAt + 1,
      digest: this.#digest(JSON.stringify(compared)),
    };
  }
}

function isSame({ rawHeaders: last, ignoredAt }: Fingerprint, sent: readonly string[]): boolean {
  if (sent.length !== last.length) return false;
  for (let index = 0; index < sent.length; index += 1) {
    if (sent[index] !== last[index] && !ignoredAt.includes(index)) return false;
  }
  return true;
}
