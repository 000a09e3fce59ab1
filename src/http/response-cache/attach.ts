import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import { isLicensePrincipal, type KnownCredential } from '../../service/access/credential.ts';
import { presentAge, type RouteResponse, type CacheableLicense } from '../response.ts';
import type { App, Pipeline, Readiness } from '../app.ts';
import { requestIdFrom } from '../entry/request-state.ts';
import type { Route } from '../route.ts';
import {
  CachedResponses,
  type CachedResponse,
  requestIdName,
  RequestFingerprints,
  type Fingerprint,
} from './cached-responses.ts';

/** The pipeline refuses requests in these states, or closes their connections. */
const bypassed: ReadonlySet<Readiness['state']> = new Set(['starting', 'leaving', 'draining']);

/** How many combinations of fingerprint and path are known. */
const maxKnown = 1_000;

/**
 * Puts a response cache in front of the pipeline of one listener (src/http/entry/README.md, Response cache). Everything else
 * works without it. It reads three facts: which answer a handler calls cacheable, which credential was accepted, and
 * which licenses and credentials commits have changed.
 */
export function attachResponseCache(
  server: FastifyInstance,
  { app, pipeline }: { app: App; pipeline: Pipeline },
): void {
  if (!app.cachesResponses) return;
  const cache = new ResponseCache(app);
  const { handle } = pipeline;
  pipeline.handle = (request, response) => {
    if (!cache.serve(request, response)) handle(request, response);
  };
  server.addHook('onSend', (_, reply, body, done) => {
    cache.add(reply, body);
    done();
  });
  server.addHook('onClose', (_, done) => {
    cache.close();
    done();
  });
}

/** What the cache knows of a request that the pipeline handles. The generations are those at its start. */
type Missed = { fingerprint: Fingerprint; generation: number; ofCredentials: number };

/** What all responses to requests with the same fingerprint and path have in common. */
type KnownRequest = {
  route: Route;
  knownCredential: KnownCredential;
  /** Names and values in turn. */
  headers: readonly string[];
};

class ResponseCache {
  readonly #app: App;
  readonly #responses = new CachedResponses();
  readonly #fingerprints: RequestFingerprints;
  readonly #known = new LRUCache<string, KnownRequest>({ max: maxKnown });
  readonly #missed = new WeakMap<IncomingMessage, Missed>();
  /** Increases with each change of credentials. */
  #ofCredentials = 0;
  /** Ends the subscription to changes. */
  readonly close: () => void;

  constructor(app: App) {
    this.#app = app;
    this.#fingerprints = new RequestFingerprints(app.digest);
    this.close = app.changes.subscribe((changes) => {
      this.#responses.invalidate(changes);
      if (changes.every((change) => typeof change === 'object')) return;
      this.#ofCredentials += 1;
      this.#known.clear();
    });
  }

  /** Sends a cached response; false: there is none, or the pipeline has to decide. */
  serve(request: IncomingMessage, response: ServerResponse): boolean {
    const { metrics, credentials, rates } = this.#app;
    const begunAt = metrics.begin();
    const fingerprint = this.#fingerprints.of(request);
    if (fingerprint === null || bypassed.has(this.#app.readiness().state)) return false;
    const now = this.#app.now();
    const { url = '' } = request;
    const cached = this.#responses.get(keyOf(fingerprint, url), now) ?? this.#respondNow(fingerprint, url);
    if (cached === null) {
      const { generation } = this.#responses;
      this.#missed.set(request, { fingerprint, generation, ofCredentials: this.#ofCredentials });
      return false;
    }
    const principal = credentials.use(cached.knownCredential);
    if (principal === null || principal === 'expired') return false;
    // Checked last because it counts; a request beyond the rate does not count, and the pipeline refuses it.
    if (rates.requests.take(principal.credential) > 0) return false;
    const id = requestIdFrom(request.rawHeaders[fingerprint.requestIdAt]);
    response.writeHead(200, currentHeaders(cached, id, now)).end(cached.body);
    cached.cacheable.onServed();
    metrics.countResponse(cached.route, 200, begunAt);
    return true;
  }

  /**
   * Answers a verify of another license key, if its fingerprint is known and a read of the store is enough. Through the
   * pipeline, such a verify takes twice the processor time (`npm run bench -- each-once`).
   */
  #respondNow(fingerprint: Fingerprint, url: string): CachedResponse | null {
    const known = this.#known.get(keyOf(fingerprint, pathOf(url)));
    if (known === undefined) return null;
    try {
      const answer = known.route.respondNow?.(this.#app, known.knownCredential.principal, url);
      if (answer?.cacheable === undefined) return null;
      const body = JSON.stringify(answer.body);
      const named = { ...known, knownCredential: this.#named(known.knownCredential, answer.cacheable) };
      const response = responseOf(named, { ...answer, cacheable: answer.cacheable }, body);
      this.#responses.set(keyOf(fingerprint, url), url, response, this.#responses.generation);
      return response;
    } catch {
      // The pipeline meets the same error of the store and reports it.
      return null;
    }
  }

  /** On a holder, the credential of a request may be its license key. */
  #named(knownCredential: KnownCredential, { licenseKey }: CacheableLicense): KnownCredential {
    const { licenseCredential } = this.#app;
    const { principal } = knownCredential;
    if (licenseCredential === null || !isLicensePrincipal(principal)) return knownCredential;
    return { ...knownCredential, principal: { ...principal, credential: licenseCredential(licenseKey) } };
  }

  /** Caches a response that the pipeline is about to send, if its handler allows it. */
  add(reply: FastifyReply, body: unknown): void {
    const { raw, state, routeOptions } = reply.request;
    const missed = this.#missed.get(raw);
    if (missed?.ofCredentials !== this.#ofCredentials || typeof body !== 'string') return;
    const { response: answer, knownCredential } = state ?? {};
    const { route } = routeOptions.config;
    if (!answer?.cacheable || !knownCredential || !route) return;
    const { url = '' } = raw;
    const own = new Set([...Object.keys(answer.headers).map((name) => name.toLowerCase()), 'content-type']);
    const known = {
      route,
      knownCredential,
      headers: Object.entries(reply.getHeaders()).flatMap(([name, value]) =>
        own.has(name) ? [] : [name, String(value)],
      ),
    };
    this.#known.set(keyOf(missed.fingerprint, pathOf(url)), known);
    const response = responseOf(known, { ...answer, cacheable: answer.cacheable }, body);
    this.#responses.set(keyOf(missed.fingerprint, url), url, response, missed.generation);
  }
}

function keyOf({ digest }: Fingerprint, target: string): string {
  return `${digest} ${target}`;
}

function pathOf(target: string): string {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

function responseOf(
  { headers, route, knownCredential }: KnownRequest,
  answer: RouteResponse & { cacheable: CacheableLicense },
  body: string,
): CachedResponse {
  const own = Object.entries(answer.headers).flatMap(([name, value]) => [name.toLowerCase(), value]);
  const length = String(Buffer.byteLength(body));
  const content = ['content-type', 'application/json; charset=utf-8', 'content-length', length];
  return {
    headers: [...headers, ...own, ...content],
    body,
    route: route.path,
    knownCredential,
    cacheable: answer.cacheable,
  };
}

/** The headers of a cached response with the id of this request, and with the present age. */
function currentHeaders({ headers, cacheable }: CachedResponse, id: string, now: number): string[] {
  const current = [...headers];
  for (let index = 0; index < current.length; index += 2) {
    if (current[index] === requestIdName) current[index + 1] = id;
    else if (current[index] === 'age' && cacheable.confirmedAt !== null)
      current[index + 1] = presentAge(now - cacheable.confirmedAt);
  }
  return current;
}
