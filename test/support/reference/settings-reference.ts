import {
  type Description,
  fileKeyOf,
  kindOf,
  type Reload,
  type Section,
  type Setting,
} from '../../../src/config/description.ts';
import { kinds, orNull } from '../../../src/config/value/kind.ts';
import { root } from '../../../src/config/settings/root.ts';

/** The keys that lead to a value; `[]` is any item of a list. */
type Path = readonly string[];

type Row = {
  path: Path;
  fallback: string;
  unit: string;
  values: string;
  reload: Reload;
  purpose: string;
};

/** A heading and a table for each section of the file, made from its descriptions. */
export function settingsTables(): string {
  return Object.entries<Description>(root.keys)
    .map(([key, description]) => `## ${key}\n\n${chapterOf([key], description)}`)
    .join('\n\n');
}

/** Writes a key as an operator does: `products[].secret`. */
export function writeKey(path: Path): string {
  return path.join('.').replaceAll('.[]', '[]');
}

/** The environment variable of a value; of items, that of the first. */
function variableOf(path: Path): string {
  return `LATCHKEY_${path.map((step) => (step === '[]' ? '0' : step.toUpperCase())).join('__')}`;
}

function chapterOf(path: Path, description: Description): string {
  const rules = rulesOf(path, description);
  const refused = rules.length === 0 ? '' : `\n\nRefused, too:\n\n${rules.join('\n')}`;
  if (description.kind !== 'section') return tableOf(rowsOf(path, description, 'applies')) + refused;
  const isOptional = description.optional === true ? ' It may be left out.' : '';
  return `${description.purpose}${isOptional}\n\n${tableOf(rowsWithin(path, description, 'applies'))}${refused}`;
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ path, fallback, unit, values, reload, purpose }) =>
    [code(writeKey(path)), fallback, unit, values, code(variableOf(path)), reload, purpose]
      .map((cell) => cell.replaceAll('|', String.raw`\|`))
      .join(' | '),
  );
  return ['key | default | unit | value | environment | SIGHUP | what it is for', '-|-|-|-|-|-|-', ...lines]
    .map((line) => `| ${line} |`)
    .join('\n');
}

function rowsOf(path: Path, description: Description, inherited: Reload): readonly Row[] {
  const { purpose, reload = inherited } = description;
  if (description.kind === 'section') {
    const fallback = description.optional === true ? code('null') : '';
    const row = { path, fallback, unit: '', values: 'a mapping', reload, purpose };
    return [row, ...rowsWithin(path, description, reload)];
  }
  if (description.kind !== 'list') return settingRows(path, description, reload);
  const { items } = description;
  const isOfMappings = items.kind === 'section';
  const values = `a list: ${isOfMappings ? 'mappings' : kindOf(items).expected}`;
  const row = { path, fallback: code('[]'), unit: '', values, reload, purpose };
  return isOfMappings ? [row, ...rowsWithin([...path, '[]'], items, reload)] : [row];
}

function rowsWithin(path: Path, section: Section, inherited: Reload): readonly Row[] {
  const { keys, reload = inherited } = section;
  return Object.entries(keys).flatMap(([key, each]) => rowsOf([...path, key], each, reload));
}

function settingRows(path: Path, setting: Setting, reload: Reload): readonly Row[] {
  const { purpose } = setting;
  const kind = kindOf(setting);
  const unit = setting.unit ?? kind.unit ?? '';
  const row = { path, fallback: defaultOf(setting), unit, values: kind.expected, reload, purpose };
  if (setting.kind !== 'secret') return [row];
  const file = {
    ...row,
    path: [...path.slice(0, -1), fileKeyOf(path.at(-1) ?? '')],
    fallback: code('null'),
    values: orNull(kinds.path).expected,
    purpose: `A file that holds ${code(path.at(-1) ?? '')}, and nothing else.`,
  };
  return [row, file];
}

function defaultOf(setting: Setting): string {
  const { default: fallback } = setting;
  if (fallback === undefined) return 'must be given';
  if (typeof fallback === 'number') return code(kindOf(setting).show(fallback));
  return typeof fallback === 'object' && fallback !== null ? fallback.text : code(fallback);
}

/** The rules over several keys, in the words of their faults. */
function rulesOf(path: Path, description: Description): readonly string[] {
  if (description.kind === 'list') {
    const { items, distinct = [] } = description;
    const twice = distinct.map((name) => `- ${code(writeKey(path))}: the same ${name} is given twice`);
    return [...twice, ...rulesOf([...path, '[]'], items)];
  }
  if (description.kind !== 'section') return [];
  const { rules = [], keys } = description;
  return [
    ...rules.map(({ about, text }) => `- ${code(writeKey([...path, about[0]]))}: ${text}`),
    ...Object.entries(keys).flatMap(([key, each]) => rulesOf([...path, key], each)),
  ];
}

function code(value: unknown): string {
  return `\`${String(value)}\``;
}
