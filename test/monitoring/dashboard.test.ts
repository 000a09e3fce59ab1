import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';

/* The schemas are Grafana’s: jsonschema/ of github.com/grafana/grafana-foundation-sdk, Apache-2.0, at f178d5a42. */

type Json = Record<string, unknown>;
type Panel = {
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
  options: unknown;
  fieldConfig: { defaults: { custom?: unknown } };
};
type Dashboard = { panels: Panel[] };

function read(path: string): Json {
  return JSON.parse(readFileSync(join(import.meta.dirname, path), 'utf8')) as Json;
}

/** The schema of a file, or of one of its definitions. */
function schemaOf(name: string, definition?: string): z.ZodType {
  const schema = read(`${name}.schema.json`);
  return z.fromJSONSchema(
    definition === undefined ? schema : { ...schema, $ref: `#/definitions/${definition}` },
  );
}

const dashboard = read('../../examples/grafana/latchkey.json') as Dashboard;
const ofType = (type: string): Panel[] => dashboard.panels.filter((panel) => panel.type === type);

test('the dashboard is one as Grafana describes them', () => {
  expect(schemaOf('dashboard').safeParse(dashboard).error).toBeUndefined();
  const spoiled = { ...dashboard, panels: dashboard.panels.map((panel) => ({ ...panel, titel: '' })) };
  expect(schemaOf('dashboard').safeParse(spoiled).success).toBe(false);
});

test('so are its panels and their queries', () => {
  const curve = schemaOf('timeseries', 'FieldConfig');
  expect(new Set(dashboard.panels.map(({ type }) => type))).toEqual(new Set(['row', 'stat', 'timeseries']));
  for (const type of ['stat', 'timeseries']) {
    const options = schemaOf(type, 'Options');
    for (const panel of ofType(type))
      expect(options.safeParse(panel.options).error, panel.title).toBeUndefined();
  }
  for (const { title, fieldConfig } of ofType('timeseries')) {
    expect(curve.safeParse(fieldConfig.defaults.custom).error, title).toBeUndefined();
  }
  const query = schemaOf('prometheus');
  const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);
  expect(targets.length).toBeGreaterThan(20);
  for (const target of targets) expect(query.safeParse(target).error, target.expr).toBeUndefined();
});

test('no panel lies on another, and each fits the width', () => {
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect(taken, title).not.toContain(`${x},${y}`);
        taken.add(`${x},${y}`);
      }
    }
  }
});
