import { z } from 'zod';
import type { RoleName } from '../domain/role.ts';
import type { KeyPath } from './errors.ts';
import { type rule, section } from './section.ts';
import { freshness, sync } from './settings/sync.ts';
import { listen } from './settings/listen.ts';
import { products } from './settings/products.ts';
import { upstream } from './settings/upstream.ts';
import { duration, path, count, rate, rateOrZero, size, wait } from './setting-types.ts';

const limits = section(
  z.strictObject({
    header_timeout: wait
      .prefault('5s')
      .meta({ description: 'How long the headers of a request may take to arrive.' }),
    header_count: count
      .prefault(40)
      .meta({ description: 'The maximum number of headers in a request.', unit: 'headers' }),
    header_bytes: size
      .prefault('8KiB')
      .meta({ description: 'The maximum size of all headers of a request together.' }),
    request_timeout: wait.prefault('10s').meta({
      description: 'How long a whole request may take to arrive; the response may take longer.',
    }),
    body_bytes: size.prefault('16KiB').meta({
      description:
        'The maximum size of a body; at least 256 KiB for a cart or a coupon, 2 MiB for a preload and 4 MiB for an import.',
    }),
    parameters: count.prefault(32).meta({
      description: 'The maximum number of parameters in a query or a form.',
      unit: 'parameters',
    }),
    connections: count.prefault(256).meta({
      description: 'The maximum number of open connections per listener.',
      unit: 'connections',
    }),
    rate: rateOrZero.prefault(0).meta({
      description: 'The maximum request rate of one credential; 0 means no limit.',
      unit: 'requests a second',
      reload: 'applies',
    }),
    misses: rate.prefault(2).meta({
      description:
        'How often one credential may make an agent look up unknown keys at the upstream (src/http/README.md, Limits). Each product counts. Keys that exist do not count.',
      unit: 'look-ups a second',
      reload: 'applies',
    }),
    failed_rate: rate.prefault(5).meta({
      description:
        'How many requests with a wrong credential get 401, for all callers together; further requests get 429.',
      unit: 'requests a second',
      reload: 'applies',
    }),
  }),
).meta({
  description: 'Limits for callers. A request over a limit is refused, never truncated.',
  reload: 'restart',
});

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
