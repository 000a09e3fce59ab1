import { join } from 'node:path';
import { z } from 'zod';
import type { RoleName } from '../domain/role.ts';
import { formatKey, type KeyPath } from './errors.ts';
import { featureSections } from './feature-sections.ts';
import type { Tree } from './file/tree.ts';
import { publicSettings } from './public-settings.ts';
import { rule, section, entryOf, itemOf, keysOf } from './section.ts';
import { type Configuration, coreSections, type Sections } from './core-sections.ts';
import { Secret } from './setting-types.ts';

export type { Configuration };

/** The sections that decide the role of a process, and what only some roles have. */
export const sectionsOfRole: readonly string[] = [
  'upstream',
  'products',
  ...featureSections.filter(({ roleIn }) => roleIn !== undefined).map(({ name }) => name),
];

/** The compiler does not see the sections of features: they are in `SectionsOfFeatures`. */
function withSectionsOfFeatures<Shape extends z.core.$ZodShape>(core: Shape): Shape {
  const sections = Object.entries(core).flatMap(([next, type]) => [
    ...featureSections.filter(({ before }) => before === next).map((added) => [added.name, added.type]),
    [next, type],
  ]);
  return Object.fromEntries(sections) as Shape;
}

/** The whole file, with every default that does not depend on the machine (defaults.ts). */
export const settings = section(
  withRulesOfFeatures(
    z
      .strictObject(withSectionsOfFeatures(coreSections))
      .refine(
        (input) => roleOf(input) !== 'authority' || input.products.length === 0,
        rule(
          ['products', 'upstream', 'leases'],
          'are only for an agent or a holder: set upstream.base_url or leases.issuer, or remove them (an authority keeps its products in its own store)',
        ),
      )
      .refine(
        (input) => roleOf(input) !== 'holder' || input.products.length > 0,
        rule(
          ['products', 'upstream', 'leases'],
          'must have at least one product: a holder serves their license keys',
        ),
      )
      .refine(
        (input) =>
          roleOf(input) === 'authority' ||
          input.listen.sockets.every(
            ({ grant }) =>
              grant === null ||
              grant.product === null ||
              input.products.some(({ key }) => key === grant.product),
          ),
        rule(
          ['listen', 'products', 'upstream', 'leases'],
          'a socket grants a product that is not in products',
        ),
      ),
  ),
);

type Rule = NonNullable<(typeof featureSections)[number]['rules']>[number];

function withRulesOfFeatures<Whole extends z.ZodType>(whole: Whole): Whole {
  return [...featureSections.flatMap(({ rules = [] }) => rules), ...publicSettings.map(ruleOfRoles)].reduce(
    (all, { keeps, or }) => all.refine((input) => keeps(input as never), or),
    whole,
  );
}

/** A process of another role must not have a setting of `listen.public`. */
function ruleOfRoles({ name, roles }: (typeof publicSettings)[number]): Rule {
  const sections = ['listen', 'upstream', ...featureSections.map((each) => each.name)] as const;
  return {
    keeps(input) {
      const settingsOfPublic: Readonly<Record<string, unknown>> = { ...input.listen.public };
      return roles.includes(roleOf(input)) || (settingsOfPublic[name] ?? null) === null;
    },
    or: { ...rule(sections, `is only for an ${roles.join(' or ')}`), path: ['listen', 'public', name] },
  };
}

/** An agent has an upstream. Without one, and if no section of a feature decides otherwise, it is an authority. */
export function roleOf(input: { readonly upstream: unknown }): RoleName {
  if (input.upstream !== null) return 'agent';
  // The compiler does not see the sections of features.
  const roles = featureSections.map(({ roleIn }) => roleIn?.(input as unknown as Sections) ?? null);
  return roles.find((role) => role !== null) ?? 'authority';
}

/** Where an issuer has its signing keys and its key statement. */
export function signingDirectoryOf(input: {
  readonly stateDir: string;
  readonly leases: { readonly signingDir: string | null };
}): string {
  return input.leases.signingDir ?? join(input.stateDir, 'signing');
}

export type UpstreamSettings = NonNullable<Configuration['upstream']>;

/**
 * Writes a configuration in the names and notation of the file: every key, with secrets as `***`.
 *
 * Read again, it gives the same configuration except for the secrets.
 */
export function effective(configuration: Configuration): Tree {
  return z.encode(settings, configuration);
}

/** The keys, as an operator writes them, whose values differ. Secrets are compared as well, and never shown. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  const [old, current] = [valuesOf(before), valuesOf(after)];
  return [...new Set([...old.keys(), ...current.keys()])].filter((key) => old.get(key) !== current.get(key));
}

/** The secrets of a configuration, for a text that must not have them. */
export function secretsOf(configuration: Configuration): readonly string[] {
  return [...settingsOf(configuration).values()].flatMap((value) =>
    value instanceof Secret ? [value.reveal()] : [],
  );
}

function valuesOf(configuration: Configuration): ReadonlyMap<string, string> {
  const values = settingsOf(configuration).entries();
  return new Map(
    values.map(([key, value]) => [key, value instanceof Secret ? value.reveal() : JSON.stringify(value)]),
  );
}

function settingsOf(configuration: Configuration): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();

  function collect(type: z.ZodType, value: unknown, path: KeyPath): void {
    const item = itemOf(type);
    const entry = entryOf(type);
    const keys = keysOf(type);
    if (item !== null && Array.isArray(value) && value.length > 0) {
      value.forEach((each, index) => collect(item, each, [...path, index]));
    } else if (entry !== null) {
      for (const [name, each] of Object.entries(value as Tree)) collect(entry, each, [...path, name]);
    } else if (keys !== null && value !== null) {
      for (const { key, name, type: each } of keys) collect(each, (value as Tree)[name], [...path, key]);
    } else values.set(formatKey(path), value);
  }

  collect(settings, configuration, []);
  return values;
}
