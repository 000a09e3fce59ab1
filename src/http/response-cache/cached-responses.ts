import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { instanceHeader, requestIdHeader } from '../../domain/header-names.ts';
import type { Digest } from '../../service/ports.ts';
import type { CacheableLicense } from '../response.ts';
import type { KnownCredential } from '../../service/access/credential.ts';
import type { Change } from '../../service/tables.ts';

/** How many responses are cached: the most recently used. */
const maxResponses = 10_000;

/** In characters. A target is a path and a license key; a longer one is not worth its memory. */
const maxTargetLength = 1_000;

/** A 200 response as it was sent: its headers as names and values in turn. */
export type CachedResponse = {
  readonly headers: readonly string[];
  readonly body: string;
  readonly route: string;
  /** The credential that the response was sent to. */
  readonly knownCredential: KnownCredential;
  readonly cacheable: CacheableLicense;
};

/** A license, until a commit changes it. Responses to several aliases of a license key share one. */
type Validity = { isValid: boolean };

type Entry = { response: CachedResponse; license: Validity };

/**
 * Responses by the key of their request. Each change is announced before its own response is sent, and invalidates the
 * responses that depend on it, so a cached response is never older than a response to a write.
 */
export class CachedResponses {
  readonly #entries = new LRUCache<string, Entry>({ max: maxResponses });
  readonly #licenses = new LRUCache<string, Validity>({
    max: maxResponses,
    dispose: (license) => {
      license.isValid = false;
    },
  });
  readonly #seen = new RecentlySeen();
  #generation = 0;

  /** Increases with each invalidation. A response whose request began in an earlier generation is not cached. */
  get generation(): number {
    return this.#generation;
  }

  invalidate(changes: readonly Change[]): void {
    this.#generation += 1;
    for (const change of changes) {
      if (typeof change === 'object') this.#licenses.delete(change.licenseKey);
      else this.#entries.clear();
    }
  }

  /** The cached response, if it is valid at this instant (`Clock.now`, which may go back). */
  get(key: string, now: number): CachedResponse | null {
    const entry = this.#entries.get(key);
    if (entry?.license.isValid !== true) return null;
    const { since, until } = entry.response.cacheable;
    return since <= now && now <= until ? entry.response : null;
  }

  /**
   * Caches a response from the second request on: a client that verifies many keys once each must not evict the
   * responses that other clients repeat.
   */
  set(key: string, target: string, response: CachedResponse, generation: number): void {
    if (generation !== this.#generation || target.length > maxTargetLength || !this.#seen.again(key)) return;
    const { licenseKey } = response.cacheable;
    const license = this.#licenses.get(licenseKey) ?? { isValid: true };
    this.#licenses.set(licenseKey, license);
    this.#entries.set(key, { response, license });
  }
}

/** Hashes of the keys of recent requests. All are dropped when there are as many as cached responses. */
class RecentlySeen {
  readonly #hashes = new Set<number>();

  /** Whether the key was seen before (rarely: another key with the same hash). */
  again(key: string): boolean {
    const hash = hashOf(key);
    if (this.#hashes.has(hash)) return true;
    if (this.#hashes.size === maxResponses) this.#hashes.clear();
    this.#hashes.add(hash);
    return false;
  }
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash;
}

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
