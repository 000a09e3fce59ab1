import { join } from 'node:path';
import { z } from 'zod';
import type { RoleName } from '../domain/role.ts';
import type { DeclaredSection } from './declared-section.ts';
import { featureSections } from './feature-sections.ts';
import { rule, section } from './schema.ts';
import { freshness } from './settings/freshness.ts';
import { limits } from './settings/limits.ts';
import { listen } from './settings/listen.ts';
import { sync } from './settings/sync.ts';
import { products, upstream } from './settings/upstream.ts';
import { duration, path } from './types.ts';

const history = section(
  z.strictObject({
    keep: duration.prefault('90d').meta({
      description:
        'How long each use, undo, enable, disable and refund is kept; at most the last 1,000 per key. 0 keeps none.',
    }),
  }),
).meta({
  description: 'The history of changes of each license key (`latchkey license history`).',
});

const metrics = section(
  z.strictObject({
    open: z
      .boolean()
      .prefault(false)
      .meta({ description: 'Whether `/metrics` can be read without a credential.' }),
  }),
).meta({ description: 'Who may read `/metrics`.' });

const log = section(
  z.strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .prefault('info')
      .meta({ description: 'The least severe level that is logged.' }),
    format: z.enum(['json', 'pretty']).meta({
      description: '`json` is for machines, `pretty` for people.',
      defaultText: '`pretty` on a terminal, else `json`',
      reload: 'restart',
    }),
  }),
).meta({
  description:
    'The log on standard output, one line per event. If it cannot be written, for example because the disk is full, the process continues and keeps up to 4 MiB of log lines in memory.',
});

/** The sections of features. A feature adds its own. */
export interface SectionsOfFeatures {}

/** A section of a feature, whose functions get all sections. */
export type FeatureSection = DeclaredSection<Sections> & { readonly name: keyof SectionsOfFeatures };

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
      .strictObject(
        withSectionsOfFeatures({
          state_dir: path.meta({
            description:
              'The directory that holds the database, `admin.token`, and `listen.json`, through which commands find the daemon.',
            defaultText:
              '`$STATE_DIRECTORY`, else `latchkey` in `$XDG_STATE_HOME` or `~/.local/state`; on Windows `%LOCALAPPDATA%\\Latchkey`, on macOS `~/Library/Application Support/Latchkey`',
            reload: 'restart',
          }),
          listen,
          upstream,
          products,
          freshness: freshness.prefault({}),
          sync: sync.prefault({}),
          limits: limits.prefault({}),
          history: history.prefault({}),
          metrics: metrics.prefault({}),
          log,
        }),
      )
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

function withRulesOfFeatures<Whole extends z.ZodType>(whole: Whole): Whole {
  return featureSections
    .flatMap(({ rules = [] }) => rules)
    .reduce((all, { keeps, or }) => all.refine((input) => keeps(input as never), or), whole);
}

/**
 * Everything that an operator decides.
 *
 * Names that end in `Ms` are milliseconds, in `Bytes` bytes; rates are requests a second; `null` means
 * "switched off" or "not given". Paths are absolute.
 */
export type Configuration = Sections & { readonly role: RoleName };

type Sections = z.output<typeof settings> & SectionsOfFeatures;

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
