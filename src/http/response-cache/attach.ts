import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { presentAge } from '../response.ts';
import type { App, Pipeline, Readiness } from '../app.ts';
import { requestIdFrom } from '../entry/request-state.ts';
import { CachedResponses, type CachedResponse } from './cached-responses.ts';
import { requestIdName, RequestFingerprints, type Fingerprint } from './request-fingerprint.ts';

/** The pipeline refuses requests in these states, or closes their connections. */
const bypassed: ReadonlySet<Readiness['state']> = new Set(['starting', 'leaving', 'draining']);

/**
 * Puts a response cache in front of the pipeline of one listener (src/http/README.md, Response cache). Everything else
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

/** What the cache knows of a request that the pipeline handles. */
type Missed = { fingerprint: Fingerprint; generation: number };

class ResponseCache {
  readonly #app: App;
  readonly #responses = new CachedResponses();
  readonly #fingerprints: RequestFingerprints;
  readonly #missed = new WeakMap<IncomingMessage, Missed>();
  /** Ends the subscription to changes. */
  readonly close: () => void;

  constructor(app: App) {
    this.#app = app;
    this.#fingerprints = new RequestFingerprints(app.digest);
    this.close = app.changes.subscribe((changed) => this.#responses.invalidate(changed));
  }

  /** Sends a cached response; false: there is none, or the pipeline has to decide. */
  serve(request: IncomingMessage, response: ServerResponse): boolean {
    const { metrics, credentials, rates } = this.#app;
    const begunAt = metrics.begin();
    const fingerprint = this.#fingerprints.of(request);
    if (fingerprint === null) return false;
    const now = this.#app.now();
    const cached = this.#responses.get(keyOf(fingerprint, request), now);
    if (cached === null) {
      this.#missed.set(request, { fingerprint, generation: this.#responses.generation });
      return false;
    }
    if (bypassed.has(this.#app.readiness().state)) return false;
    const principal = credentials.use(cached.resolvedCredential);
    if (principal === null || principal === 'expired') return false;
    // Checked last because it counts; a request beyond the rate does not count, and the pipeline refuses it.
    if (rates.requests.take(principal.credential) > 0) return false;
    const id = requestIdFrom(request.rawHeaders[fingerprint.requestIdAt]);
    response.writeHead(200, currentHeaders(cached, id, now)).end(cached.body);
    cached.cacheable.onServed();
    metrics.countResponse(cached.route, 200, begunAt);
    return true;
  }

  /** Caches a response that the pipeline is about to send, if its handler allows it. */
  add(reply: FastifyReply, body: unknown): void {
    const { raw, state, routeOptions } = reply.request;
    const missed = this.#missed.get(raw);
    if (missed === undefined || typeof body !== 'string') return;
    const { cacheable, resolvedCredential } = state ?? {};
    if (!cacheable || !resolvedCredential) return;
    const length = String(Buffer.byteLength(body));
    const headers = [...namesAndValues(reply.getHeaders()), 'content-length', length];
    const { url = '' } = raw;
    const response = { headers, body, route: routeOptions.url ?? '', resolvedCredential, cacheable };
    this.#responses.set(keyOf(missed.fingerprint, raw), url, response, missed.generation);
  }
}

function keyOf({ digest }: Fingerprint, { url = '' }: IncomingMessage): string {
  return `${digest} ${url}`;
}

function namesAndValues(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)]);
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
