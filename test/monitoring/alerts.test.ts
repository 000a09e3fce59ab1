import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { hasProgram } from '../support/process/installed.ts';

const run = promisify(execFile);
const repository = join(import.meta.dirname, '../..');
const rulesFile = join(repository, 'examples/prometheus/alerts.yaml');
const coursesFile = join(import.meta.dirname, 'alerts.yaml');

type Rule = { alert: string; annotations: Record<string, string> };
const { groups } = parse(readFileSync(rulesFile, 'utf8')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const courses = parse(readFileSync(coursesFile, 'utf8')) as {
  tests: { name: string; promql_expr_test: { expr: string; exp_samples: unknown[] }[] }[];
};

/** Where `.ci/run` unpacks it; else as Debian's `prometheus` installs it. */
const unpacked = join(repository, 'node_modules/.promtool/usr/bin/promtool');
const promtool = existsSync(unpacked) ? unpacked : 'promtool';
const isInstalled = existsSync(unpacked) || hasProgram('promtool');
const skipped = isInstalled ? '' : ' (skipped: promtool is not installed; it is in Debian’s prometheus)';

test.each(rules)(
  '$alert has a course of its metrics at which it fires, and one at which it does not',
  ({ alert }) => {
    const told = courses.tests
      .filter(({ name }) => name.startsWith(`${alert} `))
      .map(({ name, promql_expr_test: expected }) => [
        name,
        expected.map((each) => [each.expr, each.exp_samples.length]),
      ]);
    const firing = `ALERTS{alertname="${alert}", alertstate="firing"}`;
    expect(told).toEqual([
      [`${alert} fires`, [[firing, 1]]],
      [`${alert} rests`, [[firing, 0]]],
    ]);
  },
);

test('every alert leads to what to do about it', () => {
  const guide = readFileSync(join(repository, 'examples/guides/troubleshooting.md'), 'utf8');
  const headings = [...guide.matchAll(/^#+ (\w+)$/gm)].map(([, heading = '']) => heading);
  for (const { alert, annotations } of rules) {
    expect(annotations['runbook_url']).toBe(`examples/guides/troubleshooting.md#${alert.toLowerCase()}`);
    expect(headings).toContain(alert);
  }
});

test.skipIf(!isInstalled)(
  `Prometheus takes the rules, and they fire when they should${skipped}`,
  async () => {
    const checked = await run(promtool, ['check', 'rules', rulesFile]);
    expect(checked.stdout).toContain(`SUCCESS: ${rules.length} rules found`);
    const tested = await run(promtool, ['test', 'rules', coursesFile]);
    expect(tested.stdout).toContain('SUCCESS');
  },
);
