import { z } from 'zod';
import { camelCase, type CamelCase } from '../domain/text.ts';
import { type ConfigError, formatKey, type KeyPath, suggest } from './errors.ts';
import { isTree } from './file/tree.ts';
import { durationUnit, type Milliseconds, type SettingMeta } from './setting-types.ts';

type Shape = z.core.$ZodShape;

/** A section inside the program: `api_key` is `apiKey`, and the duration `drain_delay` is `drainDelayMs`. */
type Section<S extends Shape> = {
  readonly [Key in keyof S & string as NameInside<Key, z.output<S[Key]>>]: ValueInside<z.output<S[Key]>>;
};

type NameInside<Key extends string, Value> = Value extends Milliseconds
  ? `${CamelCase<Key>}Ms`
  : CamelCase<Key>;

type ValueInside<Value> = Value extends Milliseconds ? number : Value;

/** A mapping between the names of the file and the names inside the program. Rules are refinements of `object`. */
export function section<S extends Shape>(object: z.ZodObject<S, z.core.$strict>) {
  const names = Object.entries(object.shape).map(
    ([key, type]) => [key, nameInside(key, type as z.ZodType)] as const,
  );
  return z.codec(object, z.custom<Section<S>>(), {
    decode: (input) => renamed(input, names) as Section<S>,
    encode: (value) =>
      renamed(
        value,
        names.map(([key, name]) => [name, key]),
      ) as z.output<typeof object>,
  });
}

function nameInside(key: string, type: z.ZodType): string {
  const name = camelCase(key);
  return metaOf(type).unit === durationUnit ? `${name}Ms` : name;
}

function renamed(value: object, names: readonly (readonly [from: string, to: string])[]): object {
  return Object.fromEntries(
    names
      .filter(([from]) => from in value)
      .map(([from, to]) => [to, (value as Record<string, unknown>)[from]]),
  );
}

/** Options of a rule over several keys: the error is reported at the first key, and only if all of them are valid. */
export function rule(keys: readonly [string, ...string[]], error: string) {
  return {
    path: [keys[0]],
    error,
    when: ({ value, issues }: z.core.ParsePayload) =>
      isTree(value) && !issues.some(({ path }) => keys.includes(String(path?.[0]))),
  };
}

/** The type within defaults, `nullable`, `optional` and `onOrSection`. */
function unwrapped(type: z.ZodType): z.ZodType {
  const isWrapper =
    type instanceof z.ZodPrefault || type instanceof z.ZodNullable || type instanceof z.ZodOptional;
  if (isWrapper) return unwrapped(type.unwrap() as z.ZodType);
  const isSwitch = type instanceof z.ZodCodec && type.in instanceof z.ZodUnknown;
  return isSwitch ? unwrapped(type.out as z.ZodType) : type;
}

/** What the schema says about a setting, through defaults, `nullable` and `optional`. */
export function metaOf(type: z.ZodType): SettingMeta {
  return { ...unwrapped(type).meta(), ...type.meta() } as SettingMeta;
}

/** A key of a section: in the file, inside the program, and its type. */
export interface SectionKey {
  readonly key: string;
  readonly name: string;
  readonly type: z.ZodType;
}

/** The keys of a section; null if the type is no section. */
export function keysOf(type: z.ZodType): readonly SectionKey[] | null {
  const codec = unwrapped(type);
  if (!(codec instanceof z.ZodCodec) || !(codec.in instanceof z.ZodObject)) return null;
  return Object.entries(codec.in.shape as Record<string, z.ZodType>).map(([key, each]) => ({
    key,
    name: nameInside(key, each),
    type: each,
  }));
}

/** The type of the items of a list; null if the type is no list. */
export function itemOf(type: z.ZodType): z.ZodType | null {
  const list = unwrapped(type);
  return list instanceof z.ZodArray ? (list.element as z.ZodType) : null;
}

/** The type of the values of a mapping whose names the operator chooses; null if the type is no such mapping. */
export function entryOf(type: z.ZodType): z.ZodType | null {
  const mapping = unwrapped(type);
  return mapping instanceof z.ZodRecord ? (mapping.valueType as z.ZodType) : null;
}

/** Stands in a path for a name that the operator chooses. */
export const anyName = 'NAME';

/** Lists every setting, including those of list items, with its path; `[]` in a path stands for any item of a list. */
export function settingsOf(
  type: z.ZodType,
  path: readonly string[] = [],
): readonly { readonly path: readonly string[]; readonly type: z.ZodType }[] {
  const item = itemOf(type);
  if (item !== null) return settingsOf(item, [...path, '[]']);
  const entry = entryOf(type);
  if (entry !== null) return settingsOf(entry, [...path, anyName]);
  const keys = keysOf(type);
  if (keys === null) return [{ path, type }];
  return keys.flatMap((each) => settingsOf(each.type, [...path, each.key]));
}

/**
 * Writes an issue of zod as operators read it: what the value must be, after the name of its key. An issue about
 * unknown keys has one line of text for each key.
 */
export function describeIssue(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : [];
    return issue.keys.map((name) => describeUnknown(suggest(formatKey([name]), known))).join('\n');
  }
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? 'is not a valid name';
  if (issue.input === undefined) return 'is missing';
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code !== 'invalid_type') return 'is not valid';
  return typeNames[issue.expected] ?? 'is not valid';
}

const typeNames: Readonly<Partial<Record<string, string>>> = {
  array: 'must be a list',
  boolean: 'must be true or false',
  object: 'must be a mapping of keys to values',
};

function describeUnknown(near: string | undefined): string {
  return near === undefined ? 'unknown key' : `unknown key; did you mean ${near}?`;
}

export function collectErrors(
  error: z.ZodError | undefined,
  originOf: (path: KeyPath) => string,
): ConfigError[] {
  return (error?.issues ?? []).flatMap((issue) => {
    const at: KeyPath = issue.path.map((step) => (typeof step === 'number' ? step : String(step)));
    const reported: readonly (readonly [KeyPath, string])[] =
      issue.code === 'unrecognized_keys'
        ? issue.message.split('\n').map((text, index) => [[...at, issue.keys[index] ?? ''], text])
        : [[at, issue.message]];
    return reported.map(([path, text]) => ({ key: formatKey(path), text, origin: originOf(path) }));
  });
}
