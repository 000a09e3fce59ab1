import type { Rule, SectionOf, Written } from '../description.ts';
import { freshness } from './freshness.ts';
import { limits } from './limits.ts';
import { listenKeys, listenRules } from './listen.ts';
import { store } from './store.ts';
import { sync } from './sync.ts';
import { products, upstream } from './upstream.ts';

const listen: SectionOf<typeof listenKeys> = {
  kind: 'section',
  purpose: 'Where callers reach this process. Every listener serves the same routes.',
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
      'The directory that holds the database, `admin.token`, and `listen.json`, through which commands find the daemon.',
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
    purpose: 'The history of changes that is kept for each license key (`latchkey license history`).',
    keys: {
      keep: {
        kind: 'duration',
        default: '90d',
        purpose:
          'How long each use, undo, enable, disable and refund is kept; at most the last 1,000 per key. 0 keeps none.',
      },
    },
  },
  metrics: {
    kind: 'section',
    purpose: 'Who may read `/metrics`.',
    keys: {
      open: { kind: 'boolean', default: false, purpose: 'Whether they can be read without a credential.' },
    },
  },
  log: {
    kind: 'section',
    purpose:
      'The log on standard output, one line per event. If it cannot be written, for example because the disk is full, the process continues and keeps up to 4 MiB of it until it can.',
    keys: {
      level: {
        kind: 'word',
        words: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
        default: 'info',
        purpose: 'The least severe level that is logged.',
      },
      format: {
        kind: 'word',
        words: ['json', 'pretty'],
        default: { place: 'logFormat', text: '`pretty` on a terminal, else `json`' },
        reload: 'restart',
        purpose: '`json` is for machines, `pretty` for people.',
      },
    },
  },
} as const;

const rules: readonly Rule<Written<typeof keys>>[] = [
  {
    about: ['store', 'upstream'],
    text: 'is only for an authority: remove it, since an agent keeps its data in state_dir',
    holds: ({ store: { postgres }, upstream: above }) => postgres === null || above === null,
  },
  {
    about: ['products', 'upstream'],
    text: 'are only for an agent: set upstream.base_url, or remove them (an authority keeps its products in its own store)',
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
