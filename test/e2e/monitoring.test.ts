import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { startAuthorityAndAgents } from '../support/harness/authority-and-agents.ts';
import { eventually, startHarness, type Agent } from '../support/harness/agent-harness.ts';
import { startSandbox } from '../../src/testing.ts';
import { certificate, privateKey } from '../support/network/certificate.ts';
import { startNode } from '../features/postgres/support/nodes.ts';
import { hasPostgres, startPostgres } from '../features/postgres/support/postgres.ts';
import { every, refusal } from '../support/harness/plain-upstream.ts';

const examples = join(import.meta.dirname, '../../examples');
const example = (name: string): string => readFileSync(join(examples, name), 'utf8');

/** Every query of the dashboard and every expression of the alerts. */
function expressions(): string[] {
  const alerts = parse(example('prometheus/alerts.yaml')) as { groups: { rules: { expr: string }[] }[] };
  const dashboard = JSON.parse(example('grafana/latchkey.json')) as {
    panels: { targets?: { expr: string }[] }[];
    annotations: { list: { expr: string }[] };
  };
  return [
    ...alerts.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr)),
    ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...dashboard.annotations.list.map(({ expr }) => expr),
  ];
}

/** The labels of each series, by metric name. */
function seriesIn(text: string): Map<string, Set<string>> {
  const series = new Map<string, Set<string>>();
  for (const [, name = '', labels = ''] of text.matchAll(/^(latchkey_\w+)(?:\{(.*)\})? /gm)) {
    const known = series.get(name) ?? new Set();
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    series.set(name, known);
  }
  return series;
}

async function scrape(agent: Agent): Promise<string> {
  return String(await agent.ask('/metrics'));
}

/** The metrics of an authority node on PostgreSQL; empty if PostgreSQL is not installed. */
async function scrapeNode(): Promise<string> {
  if (!hasPostgres) return '';
  await using server = await startPostgres();
  await using node = await startNode(server, { schema: 'latchkey' });
  return await (await node.call('/metrics')).text();
}

/** The metrics of an authority and of an agent that delivers a change to it. */
async function scrapeDeliveries(): Promise<string> {
  await using fleet = await startAuthorityAndAgents({ licenseKeys: ['KEY'] });
  const { authority, agents } = fleet;
  for (const each of agents) {
    await each.use(['KEY']);
    await each.agent.atRest();
  }
  const { body } = await authority.http.get('/metrics', { headers: authority.admin });
  return [String(body), ...(await Promise.all(agents.map(({ agent }) => scrape(agent))))].join('\n');
}

/** The metrics of an issuer of leases and of a holder. */
async function scrapeLeases(): Promise<string> {
  await using sandbox = await startSandbox({ licenses: [{ licenseKey: 'KEY' }], withHolder: true });
  const { holder, store } = sandbox;
  await fetch(`${holder.url}/api/v2/license/verify?license_key=KEY`);
  const holderToken = readFileSync(join(holder.stateDir, 'admin.token'), 'utf8').trim();
  const read = async (url: string, token: string): Promise<string> =>
    await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text();
  return [await read(store.url, store.adminToken), await read(holder.url, holderToken)].join('\n');
}

function valueOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

test('an agent, an authority node, an issuer and a holder export every metric and label that the alerts and the dashboard name', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const files = {
    cert_file: join(harness.directory, 'cert.pem'),
    key_file: join(harness.directory, 'key.pem'),
  };
  writeFileSync(files.cert_file, certificate);
  writeFileSync(files.key_file, privateKey);
  chmodSync(files.key_file, 0o600);
  const socket = join(harness.directory, 'socket');
  const webhooks = { in: { shop: { from: 'payhip', secret: 'api-key' } } };
  const agent = await harness.startAgent({ listen: { tls: files, socket }, webhooks });
  await agent.learn(['KEY']);
  await agent.change('usage', 'KEY');
  const series = seriesIn(
    [await scrape(agent), await scrapeNode(), await scrapeLeases(), await scrapeDeliveries()].join('\n'),
  );
  // Prometheus adds these labels itself.
  const added = new Set(['job', 'instance']);
  const named = expressions();
  expect(named.length).toBeGreaterThan(40);
  for (const expression of named) {
    for (const [, name = '', matchers = ''] of expression.matchAll(/(latchkey_\w+)(?:\{([^}]*)\})?/g)) {
      if (!hasPostgres && name.startsWith('latchkey_database_')) continue;
      expect([...series.keys()], expression).toContain(name);
      const labels = [...matchers.matchAll(/(\w+)(?:=~?|!=|!~)"/g)].map(([, label = '']) => label);
      const unknown = labels.filter((label) => !added.has(label) && series.get(name)?.has(label) !== true);
      expect(unknown, expression).toEqual([]);
    }
  }
});

test('metrics show a refused credential and a pause, and the last success survives a restart', async () => {
  await using harness = await startHarness({ licenses: ['KEY'] });
  const agent = await harness.startAgent();
  await agent.learn(['KEY']);
  const well = await scrape(agent);
  expect(valueOf(well, 'latchkey_upstream_credential_refused{credential="product:product"}')).toBe(0);
  expect(valueOf(well, 'latchkey_upstream_credential_refused{credential="api_key"}')).toBe(0);
  expect([
    valueOf(well, 'latchkey_upstream_paused'),
    valueOf(well, 'latchkey_upstream_paused_products'),
  ]).toEqual([0, 0]);
  expect(valueOf(well, 'latchkey_storage_damaged')).toBe(0);
  expect(valueOf(well, 'latchkey_storage_free_bytes')).toBeGreaterThan(0);
  const started = valueOf(well, 'latchkey_start_time_seconds');
  expect(valueOf(await scrape(agent), 'latchkey_start_time_seconds')).toBe(started);
  const succeeded = valueOf(well, 'latchkey_upstream_last_success_timestamp_seconds') ?? 0;
  expect(succeeded).toBeGreaterThan(0);

  harness.upstream.fault = every(refusal(401, 'Wrong product secret key'));
  await agent.change('usage', 'KEY');
  await eventually(async () => valueOf(await scrape(agent), 'latchkey_upstream_paused_products') === 1);
  const refused = await scrape(agent);
  expect(valueOf(refused, 'latchkey_upstream_credential_refused{credential="product:product"}')).toBe(1);
  await agent.ask('/admin/v1/sync/pause', 'post');
  expect(valueOf(await scrape(agent), 'latchkey_upstream_paused')).toBe(1);

  agent.process.signal('SIGTERM');
  await agent.process.ended;
  await harness.proxy.become({ kind: 'refuse' });
  const again = await scrape(await harness.startAgent());
  const historyEntry = valueOf(again, 'latchkey_upstream_last_success_timestamp_seconds') ?? 0;
  expect(historyEntry).toBeGreaterThanOrEqual(succeeded);
  expect(historyEntry).toBeLessThan(valueOf(again, 'latchkey_start_time_seconds') ?? 0);
  expect(valueOf(again, 'latchkey_upstream_paused')).toBe(1);
});
