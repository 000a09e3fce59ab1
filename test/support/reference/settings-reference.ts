import { z } from 'zod';
import { settings } from '../../../src/config/configuration.ts';
import { anyName } from '../../../src/config/section.ts';
import type { SettingMeta } from '../../../src/config/setting-types.ts';

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

/** Every setting, as JSON Schema. */
export function settingsSchema(): Part {
  return schemaOf(settings);
}

function schemaOf(type: z.core.$ZodType): Part {
  return z.toJSONSchema(type, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod;
      // `true` may stand in place of the section.
      const isSwitch = def.type === 'pipe' && def.in._zod.def.type === 'unknown';
      if (isSwitch) Object.assign(jsonSchema, schemaOf(def.out), jsonSchema);
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

/** A heading and a list for each section of the file. */
export function settingsLists(): string {
  const root = settingsSchema();
  return Object.entries(root.properties ?? {})
    .map(([key, part]) => `## ${key}\n\n${pageOf([key], part, root.rules ?? [])}`)
    .join('\n\n');
}

/** Writes a key as an operator does: `products[].secret`. */
export function writeKey(path: Path): string {
  return path.join('.').replaceAll('.[]', '[]');
}

function pageOf(path: Path, part: Part, rootRules: NonNullable<Part['rules']>): string {
  const rules = [
    ...rootRules.filter((each) => each.path[0] === path[0]).map((each) => formatRule(each.path, each.text)),
    ...rulesWithin(path, part),
  ];
  const refused = rules.length === 0 ? '' : `\n\nAlso refused:\n\n${rules.join('\n')}`;
  const { properties } = within(part);
  if (properties === undefined) return itemsOf(path, part, 'applies', true).join('\n') + refused;
  const isOptional = part.default === null ? ' This section is optional.' : '';
  return `${part.description}${isOptional}\n\n${itemsWithin(path, part, 'applies').join('\n')}${refused}`;
}

/** The items of a setting and of the settings in it. */
function itemsOf(path: Path, part: Part, inherited: string, isRequired = false): readonly string[] {
  const { description = '', reload = inherited } = part;
  const inner = within(part);
  const { items } = { ...inner, ...part };
  const facts = [valuesOf(inner), ...unitOf(inner), ...defaultOf(part, isRequired)];
  if (inner.isSecret === true) facts.push(`or in ${code(`${path.at(-1)}_file`)}`);
  if (reload === 'restart') facts.push(reload);
  const item = `- ${code(writeKey(path))} (${facts.join('; ')}): ${description}`;
  const entry = entryOf(inner);
  if (entry !== null) return [item, ...itemsWithin([...path, anyName], entry, reload)];
  if (items?.properties !== undefined) return [item, ...itemsWithin([...path, '[]'], items, reload)];
  return [item, ...itemsWithin(path, part, reload)];
}

function itemsWithin(path: Path, part: Part, inherited: string): readonly string[] {
  const { properties = {}, required = [] } = within(part);
  const { reload = inherited } = part;
  return Object.entries(properties).flatMap(([key, each]) => {
    // The file of a secret is named beside the secret.
    const secret = properties[key.replace(/_file$/, '')] ?? {};
    if (secret !== each && within(secret).isSecret === true) return [];
    return itemsOf([...path, key], each, reload, required.includes(key));
  });
}

/** The values of a mapping whose names the operator chooses; null for any other part. */
function entryOf({ additionalProperties: entry }: Part): Part | null {
  return typeof entry === 'object' && entry.properties !== undefined ? entry : null;
}

/** The part itself, or its alternative to `null`. */
function within(part: Part): Part {
  return part.anyOf?.some(({ type }) => type === 'null') === true ? (part.anyOf[0] ?? part) : part;
}

function valuesOf(inner: Part): string {
  if (inner.properties !== undefined) return 'a mapping';
  if (entryOf(inner) !== null) return 'a mapping of names to mappings';
  const { items, expected, enum: words } = inner;
  if (items !== undefined) return `a list: ${items.properties === undefined ? valuesOf(items) : 'mappings'}`;
  if (expected === undefined) return words === undefined ? 'true or false' : `one of ${words.join(', ')}`;
  // The forms of durations, sizes and text are under "Notation".
  return expected
    .replace(/^(a (?:duration|size).*?),? such as .* or \w+/, '$1')
    .replace(', 0 or above, at most 1000000d', '')
    .replace(', above 0 and at most 24d', ' above 0')
    .replace(/^text \(.+/, 'text');
}

/** What a number counts; the units of a duration or a size are in its type. */
function unitOf({ unit = '', expected = '' }: Part): readonly string[] {
  return unit === '' || /^a (?:duration|size)/.test(expected) ? [] : [unit];
}

function defaultOf(part: Part, isRequired: boolean): readonly string[] {
  if (part.defaultText !== undefined) return [`default ${part.defaultText}`];
  const { default: fallback = null } = part;
  if (fallback === null) return isRequired ? ['required'] : [];
  if (typeof fallback === 'object') return Array.isArray(fallback) ? ['default `[]`'] : [];
  return [`default ${code(String(fallback))}`];
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
