import type { Rule, SectionOf, Written } from '../description.ts';
import { freshness } from './freshness.ts';
import { limits } from './limits.ts';
import { listenKeys, listenRules } from './listen.ts';
import { store } from './store.ts';
import { sync } from './sync.ts';
import { products, upstream } from './upstream.ts';

const listen: SectionOf<typeof listenKeys> = {
  kind: 'section',
  purpose: 'Where callers reach this process. Every listener answers the same routes.',
  reload: 'restart',
  keys: listenKeys,
  rules: listenRules,
};

const keys = {
  state_dir: {
    kind: 'path',
    default: {
      place: 'stateDir',
      text: '`$STATE_DIRECTORY`, else `latchkey` in `$XDG_STATE_HOME` or `~/.local/state`',
    },
    reload: 'restart',
    purpose:
      'The directory of the database, of `admin.token`, and of `listen.json`, by which commands find the daemon.',
  },
  store: store as typeof store,
  listen: listen as typeof listen,
  upstream: upstream as typeof upstream,
  products: products as typeof products,
  freshness: freshness as typeof freshness,
  sync: sync as typeof sync,
  limits: limits as typeof limits,
  history: {
    kind: 'section',
    purpose: 'What is remembered of the changes of a license key (`latchkey license history`).',
    keys: {
      keep: {
        kind: 'duration',
        default: '90d',
        purpose:
          'How long each use, undo, enable, disable and refund is remembered; of one key at most the last 1,000. 0 remembers none.',
      },
    },
  },
  metrics: {
    kind: 'section',
    purpose: 'Who may read `/metrics`.',
    keys: { open: { kind: 'boolean', default: false, purpose: 'Whether no credential is needed.' } },
  },
  log: {
    kind: 'section',
    purpose:
      'The log on standard output, a line for each event. Where it cannot be written, as on a full disk, the process goes on, and keeps 4 MiB of it until it can.',
    keys: {
      level: {
        kind: 'word',
        words: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
        default: 'info',
        purpose: 'The least severe level that is written.',
      },
      format: {
        kind: 'word',
        words: ['json', 'pretty'],
        default: { place: 'logFormat', text: '`pretty` on a terminal, else `json`' },
        reload: 'restart',
        purpose: 'For machines or for people.',
      },
    },
  },
} as const;

const rules: readonly Rule<Written<typeof keys>>[] = [
  {
    about: ['store', 'upstream'],
    text: 'belongs to an authority: leave it out, an agent keeps what it knows in state_dir',
    holds: ({ store: { postgres }, upstream: above }) => postgres === null || above === null,
  },
  {
    about: ['products', 'upstream'],
    text: 'belong to an agent: set upstream.base_url, or leave them out (an authority keeps its products itself)',
    holds: ({ products: given, upstream: above }) => above !== null || given.length === 0,
  },
  {
    about: ['listen', 'products', 'upstream'],
    text: 'a socket grants a product that is not in products',
    holds: ({ upstream: above, listen: { sockets }, products: given }) =>
      above === null ||
      sockets.every(
        ({ grant }) =>
          grant === null || grant.product === null || given.some(({ key }) => key === grant.product),
      ),
  },
];

/** The description of the whole file. */
export const root: SectionOf<typeof keys> = {
  kind: 'section',
  purpose: 'Everything that an operator decides.',
  keys,
  rules,
};
