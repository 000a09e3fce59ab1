import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';

/* The members that this dashboard uses, as Grafana defines them. Grafana ignores a misspelled member silently. */

const datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.literal('${datasource}') });

const target = z.strictObject({
  datasource,
  refId: z.string().regex(/^[A-Z]$/),
  expr: z.string().min(1),
  legendFormat: z.string(),
  instant: z.boolean().optional(),
});

const basics = { id: z.int().positive(), title: z.string().min(1), gridPos: gridPosition() };
const queried = { ...basics, description: z.string().min(1), datasource, targets: z.array(target).min(1) };
const unit = z.enum(['none', 'bytes', 's', 'reqps']);
const color = z.enum(['green', 'yellow', 'red']);

const valueMapping = z.strictObject({
  type: z.literal('value'),
  options: z.record(z.string(), z.strictObject({ text: z.string(), color, index: z.int() })),
});

const row = z.strictObject({
  ...basics,
  type: z.literal('row'),
  collapsed: z.boolean(),
  panels: z.tuple([]),
});

const stat = z.strictObject({
  ...queried,
  type: z.literal('stat'),
  fieldConfig: z.strictObject({
    defaults: z.strictObject({
      unit,
      color: z.strictObject({ mode: z.enum(['thresholds', 'fixed', 'palette-classic']) }).optional(),
      mappings: z.array(valueMapping).optional(),
      thresholds: z
        .strictObject({
          mode: z.enum(['absolute', 'percentage']),
          steps: z.array(z.strictObject({ color, value: z.number().nullable() })).min(1),
        })
        .optional(),
    }),
    overrides: z.tuple([]),
  }),
  options: z.strictObject({
    colorMode: z.enum(['value', 'background', 'background_solid', 'none']),
    graphMode: z.enum(['none', 'line', 'area']),
    justifyMode: z.enum(['auto', 'center']),
    orientation: z.enum(['auto', 'horizontal', 'vertical']),
    percentChangeColorMode: z.enum(['standard', 'inverted', 'same_as_value']),
    reduceOptions: z.strictObject({
      calcs: z.tuple([z.enum(['lastNotNull', 'last', 'max', 'min', 'mean', 'sum'])]),
      fields: z.string(),
      values: z.boolean(),
    }),
    showPercentChange: z.boolean(),
    textMode: z.enum(['auto', 'value', 'value_and_name', 'name', 'none']),
    wideLayout: z.boolean(),
  }),
});

const timeseries = z.strictObject({
  ...queried,
  type: z.literal('timeseries'),
  fieldConfig: z.strictObject({
    defaults: z.strictObject({
      unit,
      min: z.number().optional(),
      custom: z.strictObject({
        drawStyle: z.enum(['line', 'bars', 'points']),
        fillOpacity: z.int().min(0).max(100),
        lineWidth: z.int().min(0).max(10),
        showPoints: z.enum(['auto', 'never', 'always']),
        stacking: z.strictObject({ group: z.string(), mode: z.enum(['none', 'normal', 'percent']) }),
      }),
    }),
    overrides: z.tuple([]),
  }),
  options: z.strictObject({
    legend: z.strictObject({
      calcs: z.array(z.string()),
      displayMode: z.enum(['list', 'table', 'hidden']),
      placement: z.enum(['bottom', 'right']),
      showLegend: z.boolean(),
    }),
    tooltip: z.strictObject({
      mode: z.enum(['single', 'multi', 'none']),
      sort: z.enum(['none', 'asc', 'desc']),
    }),
  }),
});

const panel = z.discriminatedUnion('type', [row, stat, timeseries]);

const variable = {
  name: z.string(),
  label: z.string(),
  query: z.string(),
  refresh: z.int().min(0).max(2),
  hide: z.int().min(0).max(2),
  current: z.strictObject({
    text: z.union([z.string(), z.array(z.string())]),
    value: z.union([z.string(), z.array(z.string())]),
  }),
  options: z.tuple([]),
  multi: z.boolean(),
  includeAll: z.boolean(),
};

const dashboard = z.strictObject({
  uid: z.string().max(40),
  title: z.string(),
  description: z.string(),
  tags: z.array(z.string()),
  schemaVersion: z.int(),
  version: z.int(),
  editable: z.boolean(),
  graphTooltip: z.int().min(0).max(2),
  timezone: z.enum(['browser', 'utc']),
  refresh: z.string(),
  time: z.strictObject({ from: z.string(), to: z.string() }),
  annotations: z.strictObject({
    list: z.array(
      z.strictObject({
        name: z.string(),
        enable: z.boolean(),
        hide: z.boolean(),
        iconColor: z.string(),
        datasource,
        expr: z.string(),
      }),
    ),
  }),
  templating: z.strictObject({
    list: z.array(
      z.discriminatedUnion('type', [
        z.strictObject({ ...variable, type: z.literal('datasource') }),
        z.strictObject({
          ...variable,
          type: z.literal('query'),
          datasource,
          definition: z.string(),
          sort: z.int().min(0).max(8),
        }),
      ]),
    ),
  }),
  panels: z.array(panel).min(1),
});

/** Grafana divides the width of a dashboard into 24 columns. */
function gridPosition() {
  return z
    .strictObject({
      x: z.int().nonnegative(),
      y: z.int().nonnegative(),
      w: z.int().positive(),
      h: z.int().positive(),
    })
    .refine(({ x, w }) => x + w <= 24, 'the panel is wider than the dashboard');
}

const file = join(import.meta.dirname, '../../examples/grafana/latchkey.json');
const shipped: unknown = JSON.parse(readFileSync(file, 'utf8'));

test('the dashboard has the members and values that Grafana knows', () => {
  expect(dashboard.safeParse(shipped).error).toBeUndefined();
});

test('a misspelled member of a panel is found', () => {
  const { panels, ...rest } = dashboard.parse(shipped);
  const misspelled = { ...rest, panels: panels.map((each) => ({ ...each, titel: each.title })) };
  expect(dashboard.safeParse(misspelled).success).toBe(false);
});

test('every panel has an id of its own and queries with names of their own', () => {
  const { panels } = dashboard.parse(shipped);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  for (const each of panels) {
    if (each.type === 'row') continue;
    const names = each.targets.map(({ refId }) => refId);
    expect(new Set(names).size, each.title).toBe(names.length);
  }
});

test('no panel covers another', () => {
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.parse(shipped).panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect(taken, title).not.toContain(`${x},${y}`);
        taken.add(`${x},${y}`);
      }
    }
  }
});
