import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { parseDatabaseUrl } from '../src/features/postgres/config/store.ts';
import { formatConfigError } from '../src/config/errors.ts';
import { parseConfiguration } from '../src/config/load.ts';
import type { Configuration } from '../src/config/configuration.ts';
import { specification } from '../src/http/dialects.ts';
import { routesOf } from '../src/http/routes/all.ts';
import { readExample } from './support/reference/guides.ts';
import { certificate } from './support/network/certificate.ts';

const routes = await routesOf(specification);

/** How long requests in flight are waited for, in s: closeMs of src/daemon/serve.ts. */
const closeS = 15;

type Container = {
  args: string[];
  image: string;
  lifecycle: { preStop: { exec: { command: string[] } } };
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string }[];
} & Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', Probe>;
type Probe = { httpGet: { path: string; port: string; httpHeaders: { name: string; value: string }[] } };
type IngressPath = {
  path: string;
  pathType: 'Prefix' | 'Exact';
  backend: { service: { port: { name: string } } };
};
type Kinds = {
  Ingress: { spec: { rules: [{ http: { paths: IngressPath[] } }] } };
  ConfigMap: { data: { 'config.yaml': string } };
  Secret: { stringData: Record<string, string> };
  Deployment: {
    spec: {
      replicas: number;
      template: { spec: { containers: [Container]; terminationGracePeriodSeconds: number } };
    };
  };
} & Record<'PodDisruptionBudget' | 'NetworkPolicy' | 'Service', { spec: object }>;

/** What the Kubernetes file has, by kind. */
function kubernetes(): Kinds {
  const parsed = parseAllDocuments(readExample('nodes/kubernetes.yaml'));
  const values = parsed.map((document) => document.toJS() as { kind: keyof Kinds });
  return Object.fromEntries(values.map((value) => [value.kind, value])) as unknown as Kinds;
}

/** A configuration as a node reads it, with the files that are mounted into it. */
function configurationOf(text: string, url: string): Configuration {
  const file = '/etc/latchkey/config.yaml';
  const result = parseConfiguration({
    file,
    environment: {},
    home: '/',
    platform: 'linux',
    directory: '/',
    readFile: (path) => {
      if (path === file) return text;
      return path.endsWith('.pem') ? certificate : url;
    },
  });
  if (!result.ok) throw new Error(result.errors.map(formatConfigError).join('\n'));
  return result.configuration;
}

test('the nodes of the compose file have one configuration, a state of their own, and the addresses of the proxy', () => {
  const compose = parse(readExample('nodes/compose.yaml'), { merge: true }) as {
    services: Record<
      string,
      { volumes: string[]; networks?: Record<string, { ipv4_address: string }>; stop_grace_period?: string }
    >;
  };
  const url = readExample('nodes/database-url').trim();
  const { role, stateDir, listen, store } = configurationOf(readExample('nodes/config.yaml'), url);
  expect(role).toBe('authority');
  expect(parseDatabaseUrl(store.postgres?.url.reveal() ?? '')).toMatchObject({
    host: '/run/postgresql',
    user: 'latchkey',
    database: 'licenses',
  });
  const { one, two, proxy, database } = compose.services;
  const addresses = [...listen.tcp, listen.public?.address].flatMap((listener) =>
    [one, two].map((node) => `${node?.networks?.['inside']?.ipv4_address}:${listener?.port}`),
  );
  const servers = [...readExample('proxy/haproxy.cfg').matchAll(/^ *server \w+ (\S+)/gm)].map(([, at]) => at);
  expect(addresses).toEqual(servers);
  const mounts = (service: { volumes: string[] } | undefined): string[] => service?.volumes ?? [];
  const own = [one, two].map((node) => mounts(node).filter((volume) => volume.endsWith(`:${stateDir}`)));
  expect(own.flat()).toEqual([`one:${stateDir}`, `two:${stateDir}`]);
  for (const node of [one, two]) {
    expect(mounts(node)).toContain('./config.yaml:/etc/latchkey/config.yaml:ro');
    expect(mounts(node)).toContain('./database-url:/etc/latchkey-secrets/database-url:ro');
    expect(mounts(node)).toContain('database-socket:/run/postgresql');
    expect(Number.parseInt(node?.stop_grace_period ?? '', 10)).toBeGreaterThanOrEqual(
      listen.drainDelayMs / 1000 + closeS,
    );
  }
  expect(mounts(proxy).some((volume) => volume.startsWith('../proxy/haproxy.cfg:'))).toBe(true);
  expect(mounts(database)).toContain('database-socket:/run/postgresql');
  expect(mounts(database)).toContain('./role.sql:/docker-entrypoint-initdb.d/role.sql:ro');
});

test('the role of the database has the name and the password of the URL', () => {
  const location = parseDatabaseUrl(readExample('nodes/database-url').trim());
  const sql = readExample('nodes/role.sql');
  expect(sql).toContain(`CREATE ROLE ${location?.user} LOGIN PASSWORD '${location?.password}'`);
  expect(sql).toContain(`CREATE DATABASE ${location?.database} `);
  expect(sql).toContain(`CREATE SCHEMA latchkey AUTHORIZATION ${location?.user}`);
});

const kinds = kubernetes();
const { template, replicas } = kinds.Deployment.spec;
const [container] = template.spec.containers;
const url = kinds.Secret.stringData['database-url'] ?? '';
const { stateDir, listen, store } = configurationOf(kinds.ConfigMap.data['config.yaml'], url);

test('the pods of the Deployment have a sound configuration, with their secrets where it looks for them', () => {
  expect(container.args).toEqual(['serve']);
  expect(store.postgres?.caFile).toBe('/etc/latchkey-secrets/database-ca.pem');
  expect(Object.keys(kinds.Secret.stringData)).toEqual(['database-url', 'database-ca.pem']);
  expect(parseDatabaseUrl(url)?.isSecure).toBe(true);
  const paths = container.volumeMounts.map(({ mountPath }) => mountPath);
  expect(paths).toEqual(['/var/lib/latchkey', '/run/latchkey', '/etc/latchkey', '/etc/latchkey-secrets']);
  expect(stateDir).toBe('/var/lib/latchkey/state');
});

test('the pods are asked by routes that there are, under a name that is allowed, and have time to end', () => {
  const { startupProbe, livenessProbe, readinessProbe } = container;
  const probes = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet);
  expect(probes.map(({ path }) => path)).toEqual(['/livez', '/livez', '/readyz']);
  for (const { path, httpHeaders } of probes) {
    expect(routes.map((route) => route.path)).toContain(path);
    expect(httpHeaders).toEqual([{ name: 'Host', value: listen.allowedHosts[0] }]);
  }
  const [program, seconds] = container.lifecycle.preStop.exec.command;
  expect(program).toBe('sleep');
  expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
    Number(seconds) + listen.drainDelayMs / 1000 + closeS,
  );
  expect(replicas).toBe(2);
  expect(kinds.PodDisruptionBudget.spec).toMatchObject({ minAvailable: 1 });
});

test('every part of the Kubernetes file means the same pods', () => {
  const labels = { app: 'latchkey' };
  expect(kinds.Deployment.spec).toMatchObject({
    selector: { matchLabels: labels },
    template: { metadata: { labels } },
  });
  expect(kinds.PodDisruptionBudget.spec).toMatchObject({ selector: { matchLabels: labels } });
  expect(kinds.NetworkPolicy.spec).toMatchObject({ podSelector: { matchLabels: labels } });
  expect(kinds.Service.spec).toMatchObject({ selector: labels });
});

test('the Ingress and the network policy let every route for programs, devices and stores pass, and nothing else', () => {
  const { paths } = kinds.Ingress.spec.rules[0].http;
  const nameOf = (route: string): string | undefined =>
    paths.find(
      ({ path, pathType }) => route === path || (pathType === 'Prefix' && route.startsWith(`${path}/`)),
    )?.backend.service.port.name;
  const names = new Map(routes.map(({ path }) => [path, nameOf(path)]));
  for (const [path, portName] of names) {
    const isPublic = /^\/(?:lease|hooks)\//.test(path);
    const isOpen = /^\/(?:api|agent|sync)\/|^\/(?:openapi\.json|livez)$/.test(path);
    expect([path, portName]).toEqual([path, isPublic ? 'public' : isOpen ? 'http' : undefined]);
  }
  const ports = { http: listen.tcp[0]?.port, public: listen.public?.address.port };
  const given = container.ports.map(({ name, containerPort }) => [name, containerPort] as const);
  expect(Object.fromEntries(given)).toEqual(ports);
  expect(kinds.NetworkPolicy.spec).toMatchObject({
    ingress: [{ ports: [{ port: 'http' }, { port: 'public' }] }],
  });
  expect(kinds.Service.spec).toMatchObject({ ports: [{ targetPort: 'http' }, { targetPort: 'public' }] });
});
