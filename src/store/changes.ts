import type { Traced } from '../domain/outbox/trace.ts';
import type { NewEvent, NewEvents } from '../domain/event.ts';
import type { Trace } from '../service/outbox/tables.ts';
import type { Change, Changes, Reader } from '../service/tables.ts';
import type { Effect, TableEffects } from './feature-tables.ts';
import { effectsOfFeatures } from './tables.ts';

/** After more changes, for example by an import, everything is invalidated. */
const maxChanges = 1_000;

/** Collects which records to invalidate in the caches for verifies, until the committer takes the list. */
export function collectChanges(): Changes {
  let collected: Change[] = [];
  return {
    add(change) {
      if (collected.length < maxChanges) collected.push(change);
      else collected = ['anything'];
    },
    take() {
      const taken = collected;
      collected = [];
      return taken;
    },
  };
}

/** Collects events of operations for the committer. */
export function collectTrace(): Trace {
  return collect<Traced>();
}

/** Collects events until the end of a use case. */
export function collectEvents(): NewEvents {
  return collect<NewEvent>();
}

function collect<Item>(): { add: (item: Item) => void; take: () => readonly Item[] } {
  let collected: Item[] = [];
  return {
    add(item) {
      collected.push(item);
    },
    take() {
      const taken = collected;
      collected = [];
      return taken;
    },
  };
}

const nothing = (): null => null;
const credentials = (): Change => 'credentials';
const anything = (): Change => 'anything';

/** The tables that verifies read. */
const effects: TableEffects = {
  accounts: { add: nothing, keyDigest: nothing, setKeyDigest: credentials },
  products: {
    add: anything,
    secretDigest: nothing,
    setSecretDigest: credentials,
    put: anything,
    setGracedTo: nothing,
    halfGraced: nothing,
  },
  licenses: {
    // Caches never hold that a license is missing.
    add: nothing,
    change: ({ licenseKey }) => ({ licenseKey }),
    setState: ({ licenseKey }) => ({ licenseKey }),
    setTerms: ({ licenseKey }) => ({ licenseKey }),
    setGrace: (licenseKey) => ({ licenseKey }),
    isRevokedSince: nothing,
    indexForSearch: nothing,
    clearDisabledRevisions: nothing,
  },
  snapshots: {
    put: ({ license: { licenseKey } }) => ({ licenseKey }),
    setLocal: (licenseKey) => ({ licenseKey }),
    undoDelivery: (licenseKey) => ({ licenseKey }),
    remove: (licenseKey) => ({ licenseKey }),
    // These only affect how long a response is cached.
    setFollowed: nothing,
    unfollowAll: nothing,
    clearDisabledRevisions: nothing,
    touch: nothing,
    shiftWaits: nothing,
    addAlias: anything,
    restartWaits: anything,
    shiftDates: anything,
    moveAliases: anything,
  },
  tokens: {
    add: credentials,
    digest: nothing,
    setDigest: credentials,
    remove: credentials,
    // A cached token includes its last use.
    setLastUsed: credentials,
  },
  oldCredentials: { put: credentials, remove: credentials, prune: credentials },
};

/** Wraps tables so that `changes` collects their changes. An authority does not have all tables. */
export function trackChanges<Tables extends Partial<Record<keyof Reader, object>>>(
  tables: Tables,
  changes: Pick<Changes, 'add'>,
): Tables {
  const all = { ...effects, ...effectsOfFeatures() };
  const tracked = Object.entries(all).flatMap(([name, ofTable]) => {
    const table = tables[name as keyof Reader] as Record<string, Effect<unknown[]>> | undefined;
    if (table === undefined) return [];
    const methods = Object.entries(ofTable as Record<string, Effect<unknown[]>>).map(([method, effect]) => [
      method,
      (...args: unknown[]) => {
        const change = effect(...args);
        if (change !== null) changes.add(change);
        return table[method]?.(...args);
      },
    ]);
    return [[name, { ...table, ...(Object.fromEntries(methods) as object) }]];
  });
  return { ...tables, ...(Object.fromEntries(tracked) as object) };
}
