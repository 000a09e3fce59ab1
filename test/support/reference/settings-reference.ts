import { z } from 'zod';
import { settings } from '../../../src/config/configuration.ts';
import { anyName } from '../../../src/config/schema.ts';
import type { SettingMeta } from '../../../src/config/types.ts';

/** The JSON Schema of a group of settings, with its `meta()` and its rules. */
type Part = SettingMeta & {
  type?: string;
  properties?: Record<string, Part>;
  required?: string[];
  items?: Part;
  /** The values of a mapping whose names the operator chooses. */
  additionalProperties?: Part | boolean;
  anyOf?: Part[];
  enum?: string[];
  default?: string | number | boolean | null | readonly unknown[];
  rules?: { path: string[]; text: string }[];
};

/** The keys that lead to a value; `[]` is any item of a list. */
type Path = readonly string[];

type Row = {
  path: Path;
  fallback: string;
  unit: string;
  values: string;
  reload: string;
  description: string;
};

/** Every setting, as JSON Schema. */
export function settingsSchema(): Part {
  return z.toJSONSchema(settings, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      const rules = rulesOf(zodSchema);
      if (rules.length > 0) Object.assign(jsonSchema, { rules });
    },
  }) as Part;
}

/** The errors and paths of a schema's refinements. */
function rulesOf({ _zod: { def } }: z.core.$ZodType): { path: string[]; text: string }[] {
  const refined = def.type === 'pipe' ? (def as z.core.$ZodPipeDef).in._zod.def : def;
  if (!['object', 'array'].includes(refined.type)) return [];
  return (refined.checks ?? []).map(({ _zod: check }) => {
    const { path = [], error } = check.def as z.core.$ZodCustomDef;
    const text = error?.({ code: 'custom', input: undefined } as never);
    return { path: path.map(String), text: typeof text === 'string' ? text : '' };
  });
}

/** A heading and a table for each section of the file. */
export function settingsTables(): string {
  const root = settingsSchema();
  return Object.entries(root.properties ?? {})
    .map(([key, part]) => `## ${key}\n\n${pageOf([key], part, root.rules ?? [])}`)
    .join('\n\n');
}

/** Writes a key as an operator does: `products[].secret`. */
export function writeKey(path: Path): string {
  return path.join('.').replaceAll('.[]', '[]');
}

/** The environment variable of a value; for items, the variable of the first item. */
function variableOf(path: Path): string {
  return `LATCHKEY_${path.map((step) => (step === '[]' ? '0' : step.toUpperCase())).join('__')}`;
}

function pageOf(path: Path, part: Part, rootRules: NonNullable<Part['rules']>): string {
  const rules = [
    ...rootRules.filter((each) => each.path[0] === path[0]).map((each) => formatRule(path, each.text)),
    ...rulesWithin(path, part),
  ];
  const refused = rules.length === 0 ? '' : `\n\nAlso refused:\n\n${rules.join('\n')}`;
  const { properties } = within(part);
  if (properties === undefined) return tableOf(rowsOf(path, part, 'applies', true)) + refused;
  const isOptional = part.default === null ? ' This section is optional.' : '';
  return `${part.description}${isOptional}\n\n${tableOf(rowsWithin(path, part, 'applies'))}${refused}`;
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ path, fallback, unit, values, reload, description }) =>
    [code(writeKey(path)), fallback, unit, values, code(variableOf(path)), reload, description]
      .map((cell) => cell.replaceAll('|', String.raw`\|`))
      .join(' | '),
  );
  return ['key | default | unit | value | environment | SIGHUP | description', '-|-|-|-|-|-|-', ...lines]
    .map((line) => `| ${line} |`)
    .join('\n');
}

function rowsOf(path: Path, part: Part, inherited: string, isRequired = false): readonly Row[] {
  const { description = '', reload = inherited } = part;
  const inner = within(part);
  const { properties, items, unit = '' } = { ...inner, ...part };
  const fallback = properties !== undefined && part.default !== null ? '' : defaultOf(part, isRequired);
  const row = { path, fallback, unit, values: valuesOf(part, isRequired), reload, description };
  const entry = entryOf(inner);
  if (entry !== null) return [row, ...rowsWithin([...path, anyName], entry, reload)];
  const item = items ?? {};
  if (item.properties !== undefined) return [row, ...rowsWithin([...path, '[]'], item, reload)];
  return [row, ...rowsWithin(path, part, reload)];
}

function rowsWithin(path: Path, part: Part, inherited: string): readonly Row[] {
  const { properties = {}, required = [] } = within(part);
  const { reload = inherited } = part;
  return Object.entries(properties).flatMap(([key, each]) =>
    rowsOf([...path, key], each, reload, required.includes(key)),
  );
}

/** The values of a mapping whose names the operator chooses; null for any other part. */
function entryOf({ additionalProperties: entry }: Part): Part | null {
  return typeof entry === 'object' && entry.properties !== undefined ? entry : null;
}

/** The part itself, or its alternative to `null`. */
function within(part: Part): Part {
  return part.anyOf?.some(({ type }) => type === 'null') === true ? (part.anyOf[0] ?? part) : part;
}

function valuesOf(part: Part, isRequired = false): string {
  const inner = within(part);
  if (inner.properties !== undefined) return 'a mapping';
  if (entryOf(inner) !== null) return 'a mapping of names to mappings';
  const { items } = inner;
  if (items !== undefined)
    return `a list: ${items.properties === undefined ? valuesOf(items, true) : 'mappings'}`;
  const { expected = inner.enum === undefined ? 'true or false' : `one of ${inner.enum.join(', ')}` } = inner;
  return isNullable(part, isRequired) ? `${expected}, or null` : expected;
}

/** An optional key without a default. */
function isNullable(part: Part, isRequired: boolean): boolean {
  return !isRequired && (part.default ?? null) === null;
}

function defaultOf(part: Part, isRequired: boolean): string {
  if (part.defaultText !== undefined) return part.defaultText;
  const { default: fallback = isRequired ? undefined : null } = part;
  if (fallback === undefined) return 'must be given';
  if (entryOf(within(part)) !== null) return code('{}');
  return code(Array.isArray(fallback) ? '[]' : String(fallback));
}

/** The rules over several keys, as their error texts. */
function rulesWithin(path: Path, part: Part): readonly string[] {
  const { properties = {}, items, rules = [] } = { ...within(part), ...part };
  const entry = entryOf(within(part));
  return [
    ...rules.map((each) => formatRule([...path, ...each.path], each.text)),
    ...(items === undefined ? [] : rulesWithin([...path, '[]'], items)),
    ...(entry === null ? [] : rulesWithin([...path, anyName], entry)),
    ...Object.entries(within(part).properties ?? properties).flatMap(([key, each]) =>
      rulesWithin([...path, key], each),
    ),
  ];
}

function formatRule(path: Path, text: string): string {
  return `- ${code(writeKey(path))}: ${text}`;
}

function code(value: string): string {
  return `\`${value}\``;
}
