import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { nameOf } from '../src/cli/command.ts';
import { commands } from '../src/cli/commands.ts';
import { formatConfigError } from '../src/config/errors.ts';
import { parseConfiguration, type ConfigurationResult } from '../src/config/load.ts';
import { Metrics } from '../src/daemon/metrics.ts';
import { leaseMetrics } from '../src/features/leases/daemon/metrics.ts';
import { databaseMetrics } from '../src/features/postgres/daemon/database-metrics.ts';
import { webhookMetrics } from '../src/features/webhooks/daemon/metrics.ts';
import { specification } from '../src/http/dialects.ts';
import { routesOf } from '../src/http/routes/all.ts';
import type { Status } from '../src/service/status.ts';
import { openStore } from '../src/store/sqlite/files/open.ts';
import { latchkey, runProcess } from './support/process/command-line.ts';
import { startDaemonProcess } from './support/process/daemon-process.ts';
import { chapterOf, readExample } from './support/reference/guides.ts';
import { temporaryDirectory } from './support/temporary.ts';

const routes = await routesOf(specification);

const repository = join(import.meta.dirname, '..');
const examples = join(repository, 'examples');
/** But for the guides, which test/guides.test.ts reads more closely. */
const files = readdirSync(examples, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.includes('.') && !name.endsWith('.md'),
);
const read = (name: string): string => readFileSync(join(examples, name), 'utf8');

/** Every document of a YAML file, as plain values; throws on what YAML objects to. */
function documents(name: string): unknown[] {
  return parseAllDocuments(read(name)).map((document) => {
    expect([...document.errors, ...document.warnings], name).toEqual([]);
    return document.toJS() as unknown;
  });
}

/** Every value in a tree that stands under a key. */
function valuesOf(tree: unknown, key: string): unknown[] {
  if (typeof tree !== 'object' || tree === null) return [];
  return Object.entries(tree).flatMap(([name, value]) => [
    ...(name === key ? [value as unknown] : []),
    ...valuesOf(value, key),
  ]);
}

function parse(text: string): ConfigurationResult {
  return parseConfiguration({
    file: '/etc/latchkey/config.yaml',
    environment: {},
    home: '/',
    platform: 'linux',
    directory: '/',
    readFile: (path) => (path === '/etc/latchkey/config.yaml' ? text : 'a-secret'),
  });
}

test('all of them are YAML where they say so', () => {
  const yaml = files.filter((name) => name.endsWith('.yaml'));
  expect(yaml.length).toBeGreaterThan(4);
  for (const name of yaml) expect(documents(name).length, name).toBeGreaterThan(0);
});

test('the configurations are sound, and those of agents', () => {
  const [configMap] = documents('kubernetes-sidecar.yaml') as [{ data: Record<string, string> }];
  // What is commented out is meant to be put in.
  const whole = read('agent.yaml').replaceAll(
    /^( *)# (?=sockets:|  - path|    mode|    group|    grant|api_key_file)/gm,
    '$1',
  );
  for (const text of [read('agent.yaml'), configMap.data['config.yaml'] ?? '', whole]) {
    const result = parse(text);
    const found = result.ok ? result.configuration.role : result.errors.map(formatConfigError);
    expect([found, result.ok && result.configuration.listen.tcp[0]?.port]).toEqual(['agent', 8787]);
  }
  expect(parse(whole)).toMatchObject({
    configuration: {
      listen: { sockets: [{ path: '/run/latchkey/shop.sock', group: 'shop' }] },
      upstream: { apiKey: expect.anything() as unknown },
    },
  });
});

test('the unit is what service print writes', async () => {
  const { out } = await latchkey('service', 'print', '--program', '/usr/local/bin/latchkey');
  expect(read('latchkey.service')).toBe(out);
});

test('every command in them exists', async () => {
  const loaded = await Promise.all(commands.map(({ load }) => load()));
  const groups = new Map(
    loaded.map((each) => [nameOf(each), 'commands' in each ? each.commands.map(nameOf) : []]),
  );
  const words = files.flatMap((name) => [
    ...read(name).matchAll(
      /(?<![-/.\w])latchkey (?<command>[a-z]+)(?: (?<member>[a-z-]+))?(?= |["',.`\n]|$)/g,
    ),
  ]);
  const named = words.filter(({ groups: found }) => groups.has(found?.['command'] ?? ''));
  expect(named.length).toBeGreaterThan(5);
  const unknown = named.filter(({ groups: found }) => {
    const members = groups.get(found?.['command'] ?? '') ?? [];
    return members.length > 0 && !members.includes(found?.['member'] ?? '');
  });
  expect(unknown.map(([text]) => text)).toEqual([]);
});

test('what the image is built of is there, and sent to the builder', () => {
  const dockerfile = read('Dockerfile');
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
    ([, paths]) => paths?.split(' ') ?? [],
  );
  expect(copied).toContain('src');
  for (const path of copied) expect(existsSync(join(repository, path)), path).toBe(true);
  const sent = [...read('Dockerfile.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path);
  expect(sent).toEqual(copied);
  const major = /^FROM node:(\d+)-/m.exec(dockerfile)?.[1];
  expect(Number(major)).toBeGreaterThanOrEqual(26);
});

test('probes run in the container, since the pod’s address is not loopback, and succeed when the daemon is ready', async () => {
  const pod = documents('kubernetes-sidecar.yaml');
  expect(valuesOf(pod, 'httpGet')).toEqual([]);
  const probes = valuesOf(pod, 'exec').map((exec) => (exec as { command: string[] }).command);
  const healthcheck = /^HEALTHCHECK .*CMD (\[.+\])$/m.exec(read('Dockerfile'))?.[1] ?? '[]';
  expect(probes).toHaveLength(2);
  await using directory = temporaryDirectory();
  await using _ = await startDaemonProcess(directory.path, { listen: { tcp: '127.0.0.1:0' } });
  for (const [program, ...argv] of [...probes, JSON.parse(healthcheck) as string[]]) {
    expect(program).toBe('latchkey');
    const environment = { LATCHKEY_CONFIG: join(directory.path, 'config.yaml') };
    expect(await runProcess(argv, environment)).toEqual({ code: 0, out: 'ok\n', err: '' });
  }
});

test('what is mounted is where the configuration looks for it', () => {
  const mounts = valuesOf(documents('kubernetes-sidecar.yaml'), 'mountPath');
  expect(mounts).toEqual(['/var/lib/latchkey', '/run/latchkey', '/etc/latchkey', '/etc/latchkey-secrets']);
  const compose = read('compose.yaml');
  for (const path of ['/var/lib/latchkey', '/etc/latchkey/config.yaml', '/etc/latchkey/rgsf.secret']) {
    expect(compose).toContain(`:${path}`);
  }
});

test('the state directory that each of them makes can be written by its user alone', () => {
  const [, mode, made] = /install -d -o latchkey -g latchkey -m (0\d+) (\S+)/.exec(read('Dockerfile')) ?? [];
  expect([mode, made]).toEqual(['0700', stateDirOf(read('agent.yaml'))]);
  expect(read('latchkey.service')).toMatch(/^StateDirectory=latchkey\nStateDirectoryMode=0700$/m);
});

test('a pod finds its state directory as it left it, though a group may write to the volume', async () => {
  const pod = documents('kubernetes-sidecar.yaml');
  const [{ data }] = pod as [{ data: Record<string, string> }];
  const [policy] = valuesOf(pod, 'fsGroupChangePolicy');
  const stateDir = stateDirOf(data['config.yaml'] ?? '');
  const below = relative('/var/lib/latchkey', stateDir);
  expect(below).toMatch(/^[a-z]+$/);
  const start = (volume: string): void => openStore({ directory: join(volume, below) })[Symbol.dispose]();
  await using mounted = temporaryDirectory();
  for (let pods = 0; pods < 3; pods += 1) {
    mountForGroup(mounted.path, policy);
    start(mounted.path);
  }
  await using opened = temporaryDirectory();
  mountForGroup(opened.path, undefined);
  start(opened.path);
  mountForGroup(opened.path, undefined);
  expect(() => start(opened.path)).toThrow('other users can write to it');
});

function stateDirOf(text: string): string {
  const result = parse(text);
  return result.ok ? result.configuration.stateDir : '';
}

/** What the kubelet does to a volume with fsGroup, at each start of a pod: everything in it, unless told otherwise. */
function mountForGroup(volume: string, policy: unknown): void {
  const isAsWanted = (statSync(volume).mode & 0o2770) === 0o2770;
  if (policy === 'OnRootMismatch' && isAsWanted) return;
  const inside = readdirSync(volume, { recursive: true, encoding: 'utf8' });
  for (const path of [volume, ...inside.map((name) => join(volume, name))]) {
    const status = statSync(path);
    chmodSync(path, status.mode | (status.isDirectory() ? 0o2770 : 0o660));
  }
}

const status: Status = {
  role: 'agent',
  version: '1.0.0',
  instance: 'i',
  uptimeMs: 1,
  listeners: { tcp: null, otherTcp: [], socket: null, sockets: [], public: null, lost: [], tls: null },
  upstream: {
    state: 'up',
    since: 0,
    protocol: 'plain',
    follows: [],
    breaker: 'closed',
    lastSuccessAt: 0,
    lastError: null,
    lastErrorAt: null,
    recoveredAt: null,
    retryAfterUntil: null,
    nextAttemptAt: null,
    proxy: null,
    pausedProducts: [],
    couponsPaused: false,
  },
  outbox: {
    depth: {
      pending: 1,
      in_flight: 1,
      uncertain: 1,
      delivered: 1,
      inferred: 1,
      conflicted: 1,
      dead: 1,
      cancelled: 1,
      dropped: 1,
    },
    held: 0,
    oldestAgeMs: 1,
  },
  preload: null,
  missing: null,
  storeEvents: null,
  leases: null,
  issuer: null,
  storage: 'ok',
  records: { fresh: 1, stale: 1, grace: 1, expired: 1, disabled: 1 },
  clock: { now: 0, suspect: false, storeAheadMs: null, highWater: 0 },
  webhooks: null,
  agents: null,
  totals: { verifies: 0, uses: 0 },
};

/** What is scraped, of every role and with every feature. */
async function allMetrics(): Promise<string> {
  using metrics = new Metrics({ role: 'agent', isSecure: true });
  using ofHolder = new Metrics({ role: 'holder', isSecure: false });
  databaseMetrics(metrics, () => ({ connections: 1, free: 1, waiting: 0, max: 1 }));
  webhookMetrics(metrics, 'agent');
  leaseMetrics(metrics, 'agent');
  leaseMetrics(ofHolder, 'holder');
  metrics.countUnrouted(400);
  const snapshot = { status, freeBytes: 1, productKeys: ['p'] };
  return `${await metrics.expose(snapshot)}\n${await ofHolder.expose(snapshot)}`;
}

test('the guide for operators lists every metric, and no other metric', async () => {
  const real = [...(await allMetrics()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  const written = chapterOf(readExample('guides/maintain.md'), 'Metrics').matchAll(/`(latchkey_[a-z_]+)`/g);
  expect(new Set([...written].map(([, name]) => name))).toEqual(new Set(real));
});

test('the alerts and the scrape name metrics, labels and a route that exist', async () => {
  const described = [...(await allMetrics()).matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  const names = new Set(
    described.flatMap(([, name = '', type]) => (type === 'histogram' ? [`${name}_bucket`] : [name])),
  );
  const expressions = valuesOf(documents('prometheus/alerts.yaml'), 'expr').map(String);
  expect(expressions.length).toBeGreaterThan(8);
  for (const expression of expressions) {
    for (const [name] of expression.matchAll(/latchkey_\w+/g)) expect(names, expression).toContain(name);
  }
  for (const [, label] of expressions.join('\n').matchAll(/\{(\w+)=/g)) {
    expect(['job', 'freshness', 'result', 'state', 'status']).toContain(label);
  }
  const [scrape] = documents('prometheus/scrape.yaml');
  const paths = routes.map(({ path }) => path);
  const [asked] = valuesOf(scrape, 'metrics_path');
  expect(paths).toContain(asked);
  expect(valuesOf(scrape, 'targets')).toEqual([['127.0.0.1:8787']]);
});
