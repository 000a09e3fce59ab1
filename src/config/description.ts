import { kinds, oneOf, orFalse, orNull, type Kind, type KindTypes } from './value/kind.ts';
import type { Places } from './place.ts';

/** Whether a running process takes a changed value on at SIGHUP, or only at its next start. */
export type Reload = 'applies' | 'restart';

/**
 * The description of one setting. Everything about it follows from here: how it is read, shown and
 * reloaded, its part of the type `Configuration`, and its row in src/config/README.md.
 *
 * Descriptions are written `as const`, so that the type can be inferred. What they take from elsewhere is
 * asserted to the type it has: isolatedDeclarations infers no type from a name.
 */
export type Setting = {
  readonly purpose: string;
  /** What its number counts; durations and sizes have a unit by their kind. */
  readonly unit?: string;
  /** `false` switches it off, which is `null` inside. */
  readonly orFalse?: true;
  /**
   * A text as it stands in the file, a number in the unit of the inside (ms, bytes), or what the machine or
   * another setting decides. `null`: it need not be given. Without a default it must be given.
   */
  readonly default?: string | number | boolean | null | PlaceDefault;
  /** Where it differs from the section around it. */
  readonly reload?: Reload;
} & ({ readonly kind: keyof KindTypes } | { readonly kind: 'word'; readonly words: readonly string[] });

/** A default that depends on the machine or on another setting, and how the book says it. */
export type PlaceDefault = { readonly place: keyof Places; readonly text: string };

/** A mapping of settings. */
export type Section = {
  readonly kind: 'section';
  readonly purpose: string;
  readonly keys: Descriptions;
  /** Left out, it is `null` inside; without this, every key takes its default. */
  readonly optional?: true;
  readonly rules?: readonly Rule<never>[];
  readonly reload?: Reload;
};

/** A mapping of these settings, with rules over them. */
export type SectionOf<Keys> = Omit<Section, 'keys' | 'rules'> & {
  readonly keys: Keys;
  readonly rules: readonly Rule<Written<Keys>>[];
};

/** A list, empty when left out; SIGHUP takes all of it or nothing. */
export type List = {
  readonly kind: 'list';
  readonly purpose: string;
  readonly items: Setting | Section;
  /** No two items may have the same value of one of these keys. */
  readonly distinct?: readonly string[];
  readonly reload?: Reload;
};

export type Description = Setting | Section | List;
export type Descriptions = { readonly [key: string]: Description };

/** A rule over several keys: reported as a fault of the first, checked only when all of them are valid. */
export type Rule<Values> = {
  readonly about: readonly [keyof Values & string, ...(keyof Values & string)[]];
  readonly text: string;
  readonly holds: (values: Values) => boolean;
};

/** Values under the names of the file. */
export type Written<Keys> = { readonly [Key in keyof Keys]: ValueOf<Keys[Key]> };

/** The value inside that a description stands for. */
export type ValueOf<D> = D extends { kind: 'section'; keys: infer Keys }
  ? SectionValue<Keys> | (D extends { optional: true } ? null : never)
  : D extends { kind: 'list'; items: infer Item }
    ? readonly ValueOf<Item>[]
    : SettingValue<D> | (D extends { orFalse: true } | { default: null } ? null : never);

type SettingValue<D> = D extends { kind: 'word'; words: readonly (infer Word)[] }
  ? Word
  : D extends { kind: infer Name extends keyof KindTypes }
    ? KindTypes[Name]
    : never;

/** A mapping under the names of the inside: `open` of the kind `wait` is `openMs`, `api_key` is `apiKey`. */
export type SectionValue<Keys> = {
  readonly [
    Key in keyof Keys & string as Keys[Key] extends { kind: 'duration' | 'wait' }
      ? `${CamelCase<Key>}Ms`
      : CamelCase<Key>
  ]: ValueOf<Keys[Key]>;
};

type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text;

/** The name of the inside, as the type `SectionValue` has it. */
export function nameOf(key: string, { kind }: Description): string {
  const name = key.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  return kind === 'duration' || kind === 'wait' ? `${name}Ms` : name;
}

/** How the values of a setting are read and shown. */
export function kindOf(setting: Setting): Kind<unknown> {
  const plain: Kind<unknown> = setting.kind === 'word' ? oneOf(setting.words) : kinds[setting.kind];
  if (setting.orFalse === true) return orFalse(plain);
  return setting.default === null ? orNull(plain) : plain;
}

/** A secret can stand in a file of its own, which this key names. */
export function fileKeyOf(key: string): string {
  return `${key}_file`;
}

/** Lists every setting, those of list items too, by the way to it; `[]` is any item of a list. */
export function settingsOf(
  description: Description,
  path: readonly string[] = [],
): readonly { readonly path: readonly string[]; readonly setting: Setting }[] {
  if (description.kind === 'section')
    return Object.entries(description.keys).flatMap(([key, each]) => settingsOf(each, [...path, key]));
  if (description.kind === 'list') return settingsOf(description.items, [...path, '[]']);
  return [{ path, setting: description }];
}
