import { z } from 'zod';
import { accepted, bare, ok } from '../response.ts';
import type { Readiness, App } from '../app.ts';
import { route, type Route } from '../route.ts';
import {
  healthObject,
  livenessObject,
  readinessQuery,
  reloadObject,
  serializeStop,
  stopObject,
  type HealthObject,
  type ReloadObject,
  serializeStatus,
  statusObject,
} from '../../wire/status.ts';
import { livenessQuery, nonceText } from '../../wire/proof.ts';
import { done, failWith, maxFaults, type Result } from '../../domain/problem/problem.ts';
import type { WriteOptions } from '../../service/ports.ts';
import { enveloped } from '../../wire/response.ts';

const live = route({
  method: 'GET',
  path: '/livez',
  operationId: 'getLiveness',
  tag: 'Server',
  summary: 'Whether the process works; if not, restart it',
  access: 'anyone',
  isPublic: true,
  always: true,
  query: livenessQuery,
  // A command sends its token on the connection that the proof is about.
  staysOpen: (query) => nonceText.safeParse(query.get('nonce')).success,
  answers: { 200: livenessObject, 503: livenessObject },
  handle({ app, query: { nonce }, reachedAt }) {
    const reasons = app.liveness();
    const status = reasons.length === 0 ? 200 : 503;
    const address = reachedAt();
    if (nonce === undefined || address === null) return bare(status, health(status, reasons));
    return bare(status, { ...health(status, reasons), proof: { address, hmac: app.prove(nonce, address) } });
  },
});

const ready = route({
  method: 'GET',
  path: '/readyz',
  operationId: 'getReadiness',
  tag: 'Server',
  summary: 'Whether requests are taken; with require=fresh, also whether the upstream answers',
  access: 'anyone',
  always: true,
  query: readinessQuery,
  answers: { 200: healthObject, 503: healthObject },
  async handle({ app, query }) {
    const readiness = app.readiness();
    if (readiness.state !== 'ready') return bare(503, health(503, reasonsOf(readiness)));
    const upstream = query.require === 'fresh' ? (await app.status()).upstream : null;
    if (upstream === null || upstream.state === 'up') return bare(200, health(200, readiness.reasons));
    return bare(503, health(503, [`upstream_${upstream.state}`]));
  },
});

function reasonsOf({ state, reasons }: Readiness): readonly string[] {
  return reasons.length > 0 ? reasons : [state];
}

function health(status: 200 | 503, reasons: readonly string[]): HealthObject {
  return { status: status === 200 ? 'ok' : 'unavailable', reasons };
}

const status = route({
  method: 'GET',
  path: '/statusz',
  operationId: 'getStatus',
  tag: 'Server',
  summary: 'How this process, its upstream, its outbox and its records stand',
  access: { credential: 'any', scope: 'ops' },
  sessions: 'all',
  answers: { 200: statusObject },
  handle: async ({ app }) => bare(200, serializeStatus(await app.status())),
});

const metrics = route({
  method: 'GET',
  path: '/metrics',
  operationId: 'getMetrics',
  tag: 'Server',
  summary: 'What is measured, for Prometheus; open to anyone when metrics.open is set',
  access: { credential: 'any', scope: 'ops' },
  isOpen: (app) => app.metrics.isOpen(),
  answers: { 200: z.string() },
  async handle({ app }) {
    const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' };
    return done({ status: 200, headers, body: await app.metrics.expose() });
  },
});

const descriptions = new WeakMap<App, string>();

async function describe(app: App, routes: readonly Route[]): Promise<string> {
  // Loaded on first use: the generator would slow every start.
  const { describeRoutes } = await import('../openapi/document.ts');
  return JSON.stringify(describeRoutes(routes, app));
}

const openApi = route({
  method: 'GET',
  path: '/openapi.json',
  operationId: 'getOpenApi',
  tag: 'Server',
  summary: 'This description',
  access: 'anyone',
  answers: { 200: z.looseObject({}).meta({ id: 'OpenApi' }) },
  async handle({ app, routes }) {
    const text = descriptions.get(app) ?? (await describe(app, routes));
    descriptions.set(app, text);
    return done({ status: 200, headers: { 'Content-Type': 'application/json' }, body: text });
  },
});

const backup = route({
  method: 'GET',
  path: '/admin/v1/backup',
  operationId: 'downloadBackup',
  tag: 'Server',
  summary: 'A consistent copy of the store, one at a time',
  refusals: ['backup_running', 'backed_up_by_the_database'],
  sessions: 'admin',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  answers: { 200: z.file() },
  async handle({ app, signal }) {
    const made = await app.backup(signal);
    if (!made.ok) return made;
    const { sizeBytes, content } = made.value;
    const headers = { 'Content-Type': 'application/octet-stream', 'Content-Length': String(sizeBytes) };
    return done({ status: 200, headers, body: content });
  },
});

const stop = route({
  method: 'POST',
  path: '/admin/v1/stop',
  operationId: 'stopProcess',
  tag: 'Server',
  summary: 'End this process, after it has answered the requests in flight',
  refusals: ['embedded'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  repeats: true,
  answers: { 202: enveloped(stopObject) },
  async handle({ app, writeOptions }) {
    if (app.control === null) return embedded();
    const recorded = record(app, { act: 'stop', detail: '' }, writeOptions);
    // Before the entry is stored: a disk that hangs must not prevent the stop.
    const limitMs = app.control.stop();
    await recorded;
    return accepted(serializeStop(limitMs));
  },
});

const reload = route({
  method: 'POST',
  path: '/admin/v1/reload',
  operationId: 'reloadConfiguration',
  tag: 'Server',
  summary: 'Read the configuration again; an invalid one changes nothing',
  refusals: ['embedded', 'configuration_invalid'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  repeats: true,
  answers: { 200: enveloped(reloadObject) },
  async handle({ app, writeOptions }) {
    if (app.control === null) return embedded();
    const reloaded = await app.control.reload();
    if (!reloaded.ok) {
      const { errors } = reloaded;
      return failWith('configuration_invalid', 'Nothing was changed.', {
        errors: errors.slice(0, maxFaults),
      });
    }
    const { changed, restart } = reloaded;
    await record(app, { act: 'reload', detail: changed.join(' ') }, writeOptions);
    return ok({ changed, restart } satisfies ReloadObject);
  },
});

function embedded(): Result<never> {
  return failWith('embedded', 'The program that runs this server ends and configures it.');
}

/** Adds an audit entry. If the store accepts none, for instance because the disk is full, the process goes on without. */
async function record(
  { writer, log }: App,
  command: { act: 'stop' | 'reload'; detail: string },
  writeOptions: WriteOptions,
): Promise<void> {
  await writer.write('recordProcessAct', command, writeOptions).catch((error: unknown) => {
    log.warn({ err: error, act: command.act }, 'an audit entry could not be stored');
  });
}

/** This process and its store (src/http/README.md, Health and status). */
export const processRoutes: readonly Route[] = [live, ready, status, metrics, openApi, backup, stop, reload];
