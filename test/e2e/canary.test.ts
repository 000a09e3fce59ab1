import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import { specification } from '../../src/http/dialects.ts';
import { routesOf } from '../../src/http/routes/all.ts';
import { latchkey } from '../support/process/command-line.ts';
import { leaksIn } from '../support/app/canary.ts';
import { startAuthorityAndAgents, untilEqual } from '../support/harness/authority-and-agents.ts';
import { HttpGateway } from '../support/network/http-gateway.ts';
import { patience } from '../support/patience.ts';
import { payhipRefund } from '../features/webhooks/support/store-events.ts';
import { startDaemonProcess, type DaemonProcess } from '../support/process/daemon-process.ts';
import { startPlainUpstream, type Fault, type LedgerEntryDraft } from '../support/harness/plain-upstream.ts';
import {
  httpClient,
  sendRaw,
  type HttpResponse,
  type HttpClient,
  type RequestOptions,
} from '../support/network/raw-http.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const routes = await routesOf(specification);

/*
 * Every secret and license key of these tests contains the word canary, or is searched for in full.
 */
const secret = 'lk_prod_Canary-secret';
const apiKey = 'lk_api_Canary-key';
const webhookSecret = 'Canary-webhook-secret';
const licenseKey = (index: number): string => `Canary Key/é+${index}`;

/** The secrets that must not be disclosed, and every text that the daemon disclosed. */
class Told {
  readonly secrets: string[] = [];
  readonly #texts: [where: string, text: string][] = [];

  add(where: string, text: string): void {
    this.#texts.push([where, text]);
  }

  /** Records error responses only: a successful response may contain the caller's own key. */
  addResponse(where: string, { status, headers, body }: HttpResponse): void {
    if (status >= 400) this.add(`${where} ${status}`, JSON.stringify([headers, body]));
  }

  addProcess({ lines, complaints }: DaemonProcess): void {
    this.add('stdout', lines.map((line) => JSON.stringify(line)).join('\n'));
    this.add('stderr', complaints);
  }

  get count(): number {
    return this.#texts.length;
  }

  leaks(): string[] {
    return this.#texts.flatMap(([where, text]) =>
      leaksIn(text, this.secrets).map((leak) => `${where}: ${leak}`),
    );
  }
}

/** Requests of every sort for a route, with a canary wherever one fits. */
function requestsFor(route: Route): RequestOptions[] {
  const names = Object.keys({ ...route.body?.schema.shape, ...route.query?.schema.shape });
  const every = (value: unknown): Record<string, unknown> =>
    Object.fromEntries(names.map((name) => [name, value]));
  const type = { 'content-type': 'application/json' };
  if (route.method === 'GET') return [{}];
  return [
    { json: every('Canary') },
    { json: every(['Canary']) },
    { json: every({ Canary: 'Canary' }) },
    { json: { ...every(null), license_key: licenseKey(1), other: 'Canary' } },
    { form: { license_key: licenseKey(1), code: 'x', scopes: 'Canary' } },
    { headers: type, body: '{"secret": "Canary' },
    { headers: type, body: '"Canary"' },
    { headers: type, body: '{"Canary\\u0000": Canary}' },
    { headers: { 'content-type': 'text/Canary' }, body: 'Canary' },
    { body: 'license_key=Canary%zz', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    { json: {}, headers: { 'content-encoding': 'Canary' } },
    { json: {}, headers: { 'idempotency-key': '"Canary' } },
    { json: every('Canary'), headers: { 'idempotency-key': 'Canary', prefer: 'wait=Canary' } },
  ];
}

const wrongCredentials: readonly Record<string, string>[] = [
  { authorization: 'Bearer Canary' },
  { authorization: 'Basic Q2FuYXJ5OkNhbmFyeQ==' },
  { authorization: 'Canary' },
  { 'service-api-key': 'Canary', 'product-secret-key': 'Canary' },
  { cookie: 'token=Canary', origin: 'http://Canary' },
  { referer: 'http://localhost/?license_key=Canary' },
];

/** Shorter than by default, so that the requests that never arrive completely end soon. */
const timely = { header_timeout: '3s', request_timeout: '3s' };

/** Calls every route with canaries: as the right caller, as another caller, and with broken requests. */
async function driveRoutes(http: HttpClient, admin: Record<string, string>, told: Told): Promise<void> {
  // The operator's stop would end the daemon.
  for (const route of routes.filter(({ path }) => path !== '/admin/v1/stop')) {
    const method = route.method.toLowerCase() as 'get' | 'put' | 'post' | 'delete';
    const path = route.path.replaceAll(/:\w+/g, 'Canary');
    const query = `license_key=${encodeURIComponent(licenseKey(2))}&limit=Canary&state=Canary&require=Canary`;
    const ask = async (target: string, request: RequestOptions): Promise<void> => {
      told.addResponse(`${method} ${route.path}`, await http[method](target, request));
    };
    await Promise.all([
      ...requestsFor(route).flatMap((request) =>
        [path, `${path}?${query}`].map((target) =>
          ask(target, { ...request, headers: { ...request.headers, ...admin } }),
        ),
      ),
      ...wrongCredentials.map((headers) => ask(`${path}?${query}`, { headers })),
      ask(`${path}?license_key=Canary&license_key=Canary`, { headers: admin }),
    ]);
  }
}

async function driveBrokenBytes({ tcp }: DaemonProcess, told: Told): Promise<void> {
  const line =
    'PUT /api/v2/license/usage?license_key=Canary HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nproduct-secret-key: Canary\r\n';
  for (const bytes of [
    'Canary\r\n\r\n',
    `${line}Canary\r\n\r\n`,
    `${line}Content-Length: Canary\r\n\r\n`,
    `${line}Host: Canary\r\n\r\n`,
    `${line}X: ${'Canary'.repeat(2_000)}\r\n\r\n`,
    `${line}Content-Type: text/plain\r\nContent-Length: 20000\r\n\r\n${'Canary'.repeat(3_333)}`,
    'GET http://Canary/ HTTP/1.1\r\nHost: Canary\r\nConnection: close\r\n\r\n',
    'GET /%zzCanary HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  ]) {
    told.add('raw bytes', (await sendRaw({ tcp }, bytes)).raw);
  }
}

/** Runs every command that shows something. */
async function driveCommands(directory: string, told: Told): Promise<void> {
  const commands = [
    ['status'],
    ['config', 'show'],
    ['config', 'check'],
    ['doctor'],
    ['token', 'list'],
    ['sync', 'now'],
    ['verify', 'Canary-unknown'],
    ['use', 'Canary-unknown'],
  ];
  for (const command of commands) {
    for (const flags of [[], ['--json']]) {
      const { out, err } = await latchkey(...command, ...flags, '--config', join(directory, 'config.yaml'));
      expect(`${command.join(' ')}: ${out}${err}`).not.toContain('unexpected failure');
      told.add(`latchkey ${command.join(' ')}`, out + err);
    }
  }
}

/** Writes the file for whoever helps, with a log that has what no log of Latchkey has. */
async function driveSupport(directory: string, daemon: DaemonProcess, told: Told): Promise<void> {
  const log = join(directory, 'log');
  const foreign = `proxy: GET https://user:Canary@shop.example.com/Canary?key=Canary ${secret} buyer.Canary@example.com`;
  const lines = [...daemon.lines, { level: 'info', msg: 'x', label: 'Canary' }].map((line) =>
    JSON.stringify(line),
  );
  writeFileSync(log, [...lines, foreign].join('\n'));
  const file = join(directory, 'support.txt');
  const config = join(directory, 'config.yaml');
  const { code, out, err } = await latchkey('support', '--output', file, '--log', log, '--config', config);
  expect([code, err]).toEqual([0, '']);
  told.add('latchkey support', out);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('proxy: GET https://***@shop.example.com/…');
  expect(text).not.toContain('b@example.com');
  told.add('support.txt', text);
}

/** Lets the daemon read configurations that contain secrets in wrong places. */
async function driveReloads(daemon: DaemonProcess, directory: string): Promise<void> {
  const file = join(directory, 'config.yaml');
  const good = readFileSync(file, 'utf8');
  const isRefused = (): number => daemon.lines.filter(({ level }) => level === 'error').length;
  for (const bad of [
    '{"upstream": {"api_key": ["Canary"], "base_url": "http://Canary:Canary@x/?Canary"}}',
    '{"products": [{"key": "P", "secret": {"Canary": "Canary"}}], "log": {"level": "Canary"}}',
    'upstream:\n  api_key: Canary\n api_key: "Canary',
    '{"state_dir": "/tmp", "limits": {"rate": "Canary"}, "listen": {"tcp": "Canary"}}',
  ]) {
    const before = isRefused();
    writeFileSync(file, bad);
    daemon.signal('SIGHUP');
    await expect.poll(isRefused).toBeGreaterThan(before);
  }
  writeFileSync(file, good);
}

/**
 * The state directory without the two files that are meant to hold a secret; everything else stores
 * digests only.
 */
function filesOf(stateDir: string): string {
  return readdirSync(stateDir)
    .filter((name) => name !== 'admin.token' && name !== 'api.key')
    .map((name) => readFileSync(join(stateDir, name), 'latin1'))
    .join('\n');
}

function secretIn(directory: string, name: string): string {
  return readFileSync(join(directory, 'state', name), 'utf8').trim();
}

function fieldOf({ body }: HttpResponse, name: string): string {
  const value = (body as { data: Record<string, unknown> }).data[name];
  expect(value).toMatch(/^lk_/);
  return String(value);
}

test('an authority discloses no secret and no license key to a caller who does not own it', async () => {
  await using directory = temporaryDirectory();
  const configuration = {
    listen: { tcp: '127.0.0.1:0', socket: join(directory.path, 'l.sock') },
    limits: { failed_rate: 1_000_000, ...timely },
    log: { level: 'trace' },
  };
  await using daemon = await startDaemonProcess(directory.path, configuration);
  await using http = httpClient({ tcp: daemon.tcp });
  const told = new Told();
  const token = secretIn(directory.path, 'admin.token');
  const admin = { authorization: `Bearer ${token}` };
  const post = (path: string, json: object): Promise<HttpResponse> =>
    http.post(path, { headers: admin, json });
  await post('/admin/v1/products', { name: 'Editor', product_key: 'EDITOR', secret });
  const purchase = { product_key: 'EDITOR', buyer_email: 'b@example.com', license_key: licenseKey(1) };
  await post('/admin/v1/purchases', purchase);
  const issued = await post('/admin/v1/tokens', { scopes: ['verify'] });
  const rotated = await post('/admin/v1/products/EDITOR/rotate-secret', {});
  const account = await post('/admin/v1/accounts', { name: 'A' });
  told.secrets.push(token, secretIn(directory.path, 'api.key'), fieldOf(issued, 'token'));
  told.secrets.push(fieldOf(rotated, 'secret'), fieldOf(account, 'api_key'));

  await driveRoutes(http, admin, told);
  await driveBrokenBytes(daemon, told);
  await driveCommands(directory.path, told);
  await driveSupport(directory.path, daemon, told);
  await driveReloads(daemon, directory.path);
  for (const path of ['/metrics', '/statusz', '/readyz', '/openapi.json', '/admin/v1/tokens']) {
    told.add(path, JSON.stringify((await http.get(path, { headers: admin })).body));
  }
  const files = filesOf(join(directory.path, 'state'));
  daemon.signal('SIGTERM');
  expect(await daemon.ended).toBe(0);
  told.addProcess(daemon);
  expect(told.leaks()).toEqual([]);
  expect(told.count).toBeGreaterThan(500);
  for (const kept of [secret, ...told.secrets]) expect(files).not.toContain(kept);
});

/** Responses that quote what the agent sent, as an upstream may. */
function tellingFaults({ path, headers, parameters }: LedgerEntryDraft): Fault[] {
  const key = parameters['license_key'] ?? 'it';
  const credential = headers['product-secret-key'] ?? headers['service-api-key'];
  const sent = `${path}?${new URLSearchParams(parameters).toString()} ${JSON.stringify(headers)} ${key} ${encodeURIComponent(key)}`;
  const json = { 'content-type': 'application/json', 'x-debug': encodeURIComponent(sent) };
  const replaced = (status: number, body: string, more: Record<string, string> = {}): Fault => ({
    kind: 'replaced',
    counted: false,
    status,
    headers: { ...json, ...more },
    body,
  });
  const problem = JSON.stringify({
    error: sent,
    message: sent,
    detail: `no ${key} for ${credential}`,
  });
  return [
    ...[400, 404, 409, 422, 429, 500, 502].map((status) => replaced(status, problem)),
    replaced(429, problem, { 'retry-after': 'Canary' }),
    replaced(503, `<html>${sent}</html>`, { 'content-type': 'text/html' }),
    replaced(200, `<html>${sent}</html>`, { 'content-type': 'text/html' }),
    replaced(200, problem),
    replaced(200, JSON.stringify({ data: { license_key: 'Canary-other', enabled: sent } })),
    replaced(307, '', { location: `http://127.0.0.1:9/?${encodeURIComponent(key)}` }),
    replaced(200, sent, { date: 'Canary', 'latchkey-confirmed-at': 'Canary' }),
    { kind: 'lost', counted: true },
    { kind: 'lost', counted: false },
    { kind: 'truncated', ending: 'clean' },
    { kind: 'truncated', ending: 'cut' },
    replaced(401, problem),
    replaced(403, problem),
  ];
}

test('an agent discloses no secret and no license key, even if its upstream quotes them', async () => {
  await using directory = temporaryDirectory();
  const products = [{ productKey: 'EDITOR', secret }];
  const licenses = [1, 2, 3].map((index) => ({
    licenseKey: licenseKey(index),
    productKey: 'EDITOR',
    buyerEmail: 'b@example.com',
  }));
  await using upstream = await startPlainUpstream({ apiKey, products, licenses });
  const secretFile = join(directory.path, 'editor.secret');
  writeFileSync(secretFile, secret, { mode: 0o600 });
  const configuration = {
    listen: { tcp: '127.0.0.1:0', socket: join(directory.path, 'l.sock') },
    upstream: { base_url: upstream.url, api_key: apiKey, timeout: '300ms', probe: '100ms' },
    products: [{ key: 'EDITOR', secret_file: secretFile }],
    webhooks: { in: { shop: { from: 'payhip', secret: webhookSecret } } },
    sync: {
      rate: 1000,
      reconcile_after: '20ms',
      backoff: { first: '5ms', max: '20ms' },
      breaker: { failures: 1000, open: '10ms' },
    },
    freshness: { fresh: '0ms', stale: '1ms', unknown: '0ms', gone: '0ms' },
    limits: { failed_rate: 1_000_000, misses: 1_000_000, ...timely },
    log: { level: 'trace' },
  };
  await using daemon = await startDaemonProcess(directory.path, configuration);
  await using http = httpClient({ tcp: daemon.tcp });
  const told = new Told();
  const token = secretIn(directory.path, 'admin.token');
  told.secrets.push(token);
  const admin = { authorization: `Bearer ${token}` };
  const headers = { 'product-secret-key': secret };
  const use = { headers, form: { license_key: licenseKey(1) } };
  // Polled, because a slow machine may miss the upstream's deadline.
  await expect.poll(async () => (await http.put('/api/v2/license/usage', use)).status).toBe(200);

  const count = tellingFaults({
    at: 0,
    method: 'GET',
    path: '',
    kind: 'other',
    licenseKey: '',
    headers: {},
    parameters: {},
  }).length;
  for (let index = 0; index < count; index += 1) {
    upstream.fault = (request) => tellingFaults(request)[index];
    const asked = upstream.ledger.length;
    const query = `license_key=${encodeURIComponent(licenseKey(2 + (index % 2)))}`;
    const coupon = { coupon_type: 'multi', amount_off: '5', code: `C${index}`, notes: 'Canary' };
    told.addResponse('verify', await http.get(`/api/v2/license/verify?${query}`, { headers }));
    told.addResponse(
      'unknown',
      await http.get(`/api/v2/license/verify?license_key=Canary-${index}`, { headers }),
    );
    told.addResponse('use', await http.put('/api/v2/license/usage', use));
    told.addResponse('enable', await http.put('/api/v2/license/enable', use));
    for (const known of [webhookSecret, 'Canary-wrong']) {
      const about = { licenseKey: licenseKey(1), email: 'Canary@example.com', productKey: 'Canary' };
      const { body: event } = payhipRefund(known, about);
      told.addResponse('event', await http.post('/hooks/v1/shop?secret=Canary', { body: event }));
    }
    told.addResponse('coupon', await http.post('/api/v2/coupons', { headers: admin, form: coupon }));
    told.addResponse('coupons', await http.get('/api/v2/coupons/7', { headers: admin }));
    await http.post('/admin/v1/sync/resume', { headers: admin });
    await http.post('/admin/v1/sync/now', { headers: admin });
    await expect.poll(() => upstream.ledger.length).toBeGreaterThan(asked);
    const { body } = await http.get('/admin/v1/outbox?limit=100', { headers: admin });
    const { operations } = (body as { data: { operations: { last_error: string | null }[] } }).data;
    told.add('last errors', operations.map((operation) => operation.last_error).join('\n'));
    told.add('/statusz', JSON.stringify((await http.get('/statusz', { headers: admin })).body));
  }
  await driveRoutes(http, admin, told);
  await driveBrokenBytes(daemon, told);
  await driveCommands(directory.path, told);
  await driveSupport(directory.path, daemon, told);
  await driveReloads(daemon, directory.path);
  for (const path of ['/metrics', '/statusz', '/readyz?require=fresh', '/admin/v1/tokens']) {
    told.add(path, JSON.stringify((await http.get(path, { headers: admin })).body));
  }
  const files = filesOf(join(directory.path, 'state'));
  daemon.signal('SIGTERM');
  await daemon.ended;
  told.addProcess(daemon);
  expect(told.leaks()).toEqual([]);
  expect(told.count).toBeGreaterThan(500);
  for (const msg of ['an operation was not delivered', 'an event of a store: its license keys are read'])
    expect(daemon.lines.some((line) => line.msg === msg)).toBe(true);
  for (const kept of [secret, apiKey, token, webhookSecret]) expect(files).not.toContain(kept);
});

/** Whether a route can be asked without more parameters, and does not give out the whole store. */
function isPlainRead({ method, path }: Route): boolean {
  return method === 'GET' && !path.includes(':') && path !== '/admin/v1/backup';
}

test('an authority and its agent disclose no agent id, and no license key that is used or followed', async () => {
  const licenseKeys = [licenseKey(1), licenseKey(2)];
  let gateway: HttpGateway | null = null;
  const via = async (url: string): Promise<HttpGateway> => (gateway = await HttpGateway.start(url));
  const settings = { log: { level: 'trace' }, limits: { failed_rate: 1_000_000 } };
  await using fleet = await startAuthorityAndAgents({ licenseKeys, via, settings });
  const { authority, agents } = fleet;
  const [only] = agents;
  if (gateway === null || only === undefined) throw new Error('nothing was started');
  const { requests }: HttpGateway = gateway;
  await only.use(licenseKeys);
  await authority.refund(licenseKey(2));
  await only.use(licenseKeys);
  await untilEqual(fleet, licenseKeys);
  using store = new DatabaseSync(join(only.directory, 'state', 'latchkey.db'), { readOnly: true });
  const readId = store.prepare(`SELECT value FROM setting WHERE name = 'sync_agent'`);
  // It follows license keys soon after its first answers.
  await expect.poll(() => readId.get()?.['value'], patience).toMatch(/^[0-9a-f]{32}$/);
  const id = String(readId.get()?.['value']);
  const told = new Told();
  told.secrets.push(id);
  // Requests that are refused because of their shapes, or because they are about another store.
  const credential = { 'product-secret-key': 'secret-of-the-product' };
  for (const json of [
    { agent: `${id}Canary` },
    { agent: id, follow: 'Canary' },
    { agent: id, follow: [licenseKey(1)], cursor: 'Canary', wait: 'Canary' },
  ]) {
    const changes = await authority.http.post(`/sync/v1/changes?agent=${id}`, { headers: credential, json });
    expect(changes.status).toBe(422);
    told.addResponse('changes', changes);
  }
  for (const operation of ['Canary', 'created=1, epoch=Canary', `created=1, epoch=${'c'.repeat(32)}`]) {
    const keyed = { 'idempotency-key': randomUUID(), 'latchkey-operation': operation };
    const form = { license_key: licenseKey(1) };
    const use = await authority.http.put('/api/v2/license/usage', {
      headers: { ...credential, ...keyed },
      form,
    });
    expect(use.status).toBeGreaterThanOrEqual(400);
    told.addResponse('keyed use', use);
  }
  for (const [name, http, headers] of [
    ['authority', authority.http, authority.admin],
    ['agent', only.agent.client, only.agent.admin],
  ] as const) {
    for (const { path } of routes.filter(isPlainRead)) {
      const { body, headers: sent } = await http.get(path, { headers });
      const shows = /^.admin.v1.(licenses|purchases|outbox|activations)|^.api/.test(path);
      told.add(`${name} ${path}`, JSON.stringify(shows ? sent : [sent, body]));
    }
  }
  told.add('URLs', requests.join('\n'));
  for (const { process: daemon } of [authority, only.agent]) told.addProcess(daemon);
  const lines = [authority, only.agent].flatMap(({ process: daemon }) => daemon.lines);
  expect(lines.filter((line) => Object.values(line).includes('(withheld)'))).toEqual([]);
  const isShown = (leak: string): boolean => leak.startsWith('URLs') && leak.includes('canary');
  expect(told.leaks().filter((leak) => !isShown(leak))).toEqual([]);
  expect(told.count).toBeGreaterThan(50);
});

test('the test finds a canary in every encoding in which it could be disclosed', () => {
  const found = (text: string): number => leaksIn(text, ['lk_tok_0123']).length;
  for (const text of [
    'x CANARY y',
    'key=Canary%20Key',
    Buffer.from('lk_tok_0123').toString('base64'),
    Buffer.from('canary').toString('hex'),
  ]) {
    expect([text, found(text) > 0]).toEqual([text, true]);
  }
  expect(found('a bird')).toBe(0);
});
