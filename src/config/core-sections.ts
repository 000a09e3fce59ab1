import { z } from 'zod';
import type { RoleName } from '../domain/role.ts';
import type { KeyPath } from './errors.ts';
import { type rule, section } from './section.ts';
import { freshness } from './settings/freshness.ts';
import { limits } from './settings/limits.ts';
import { listen } from './settings/listen.ts';
import { sync } from './settings/sync.ts';
import { products, upstream } from './settings/upstream.ts';
import { duration, path } from './setting-types.ts';

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

/** The sections of the core. */
export const coreSections = {
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
};

/** The sections of features. A feature adds its own. */
export interface SectionsOfFeatures {}

/** All sections, also those of features. */
export type Sections = z.output<ReturnType<typeof section<typeof coreSections>>> & SectionsOfFeatures;

/** A section of a feature, whose functions get all sections. */
export type FeatureSection = {
  readonly name: keyof SectionsOfFeatures;
  /** The section of the core that follows it. */
  readonly before: string;
  readonly type: z.ZodType;
  /** Rules over several sections. */
  readonly rules?: readonly {
    readonly keeps: (input: Sections) => boolean;
    readonly or: ReturnType<typeof rule>;
  }[];
  /** The role of a process without an upstream; null: the section does not decide it. */
  readonly roleIn?: (input: Sections) => RoleName | null;
  /** What is wrong with files that it names. */
  readonly check?: (
    input: Sections,
    readFile: (path: string) => string,
  ) => readonly { readonly at: KeyPath; readonly text: string }[];
  /** The files with secrets that it names. */
  readonly secretFiles?: (input: Sections) => readonly { readonly key: KeyPath; readonly path: string }[];
};

/**
 * Everything that an operator decides.
 *
 * Names that end in `Ms` are milliseconds, in `Bytes` bytes; rates are requests a second; `null` means
 * "switched off" or "not given". Paths are absolute.
 */
export type Configuration = Sections & { readonly role: RoleName };
