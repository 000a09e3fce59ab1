import type { z } from 'zod';
import type { Configuration } from './configuration.ts';
import {
  type Description,
  fileKeyOf,
  kindOf,
  type List,
  nameOf,
  type Section,
  type Setting,
  type ValueOf,
} from './description.ts';
import { kinds, orNull } from './value/kind.ts';
import { mask, Secret } from './value/secret.ts';
import type { Places } from './place.ts';
import { about, key, list, mapping, orAbsent, section } from './section.ts';
import { root } from './settings/root.ts';
import { isDistinct, type Tree } from './file/tree.ts';

/** The schema of the whole file, with every default. */
export function configurationSchema(places: Places): z.ZodType<Configuration> {
  return schemaOf(root, places).transform((given) => ({
    role: given.upstream === null ? 'authority' : 'agent',
    ...given,
  }));
}

/** The schema of one part of the file. */
export function schemaOf<D extends Description>(description: D, places: Places): z.ZodType<ValueOf<D>> {
  // A schema that is made from a description reads what the description says.
  return plainSchema(description, places) as z.ZodType<ValueOf<D>>;
}

function plainSchema(description: Description, places: Places): z.ZodType {
  if (description.kind === 'section') {
    const schema = sectionSchema(description, places);
    return description.optional === true ? orAbsent(schema) : section(schema);
  }
  if (description.kind === 'list') return listSchema(description, places);
  return key(kindOf(description), defaultOf(description, places));
}

function sectionSchema({ keys, rules = [] }: Section, places: Places): z.ZodType<Tree> {
  const described = Object.entries(keys);
  const shape = described.flatMap(([name, each]) => [
    [name, plainSchema(each, places)],
    ...(each.kind === 'secret' ? [[fileKeyOf(name), key(orNull(kinds.path), null)]] : []),
  ]);
  const checked = rules.reduce<z.ZodType<Tree>>(
    (schema, { holds, about: names, text }) =>
      schema.refine((given) => holds(given as never), about(names, text)),
    mapping(Object.fromEntries(shape) as Record<string, z.ZodType>),
  );
  return checked.transform((given) =>
    Object.fromEntries(described.map(([name, each]) => [nameOf(name, each), given[name]])),
  );
}

function listSchema({ items, distinct = [] }: List, places: Places): z.ZodType {
  const all = list(items.kind === 'section' ? sectionSchema(items, places) : plainSchema(items, places));
  return distinct.reduce(
    (schema, name) =>
      schema.refine(
        (given) => isDistinct(given.map((item) => comparable((item as Tree)[name]))),
        `the same ${name} is given twice`,
      ),
    all,
  );
}

/** A value by which two are the same. Of a secret that is masked nobody knows; it is the same as no other. */
function comparable(value: unknown): unknown {
  return value instanceof Secret && value.reveal() !== mask ? value.reveal() : value;
}

/** A default as it would stand in the file. */
function defaultOf(setting: Setting, places: Places): unknown {
  const { default: fallback } = setting;
  if (typeof fallback === 'number') return kindOf(setting).show(fallback);
  return typeof fallback === 'object' && fallback !== null ? places[fallback.place] : fallback;
}
