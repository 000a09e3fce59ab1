import type { Change, Changes, Reader, Transaction } from '../service/tables.ts';

/** Of more changes than these, as of an import, it is not worth telling which they are. */
const most = 1_000;

/** Collects what writes change of what verifies are answered from, until the committer takes it. */
export function collectChanges(): Changes {
  let collected: Change[] = [];
  return {
    add(change) {
      if (collected.length < most) collected.push(change);
      else collected = ['anything'];
    },
    take() {
      const taken = collected;
      collected = [];
      return taken;
    },
  };
}

/** What a call changes of what verifies are answered from; null: nothing. */
type Effect<Args extends unknown[]> = (...args: Args) => Change | null;

/** The effect of each method that writes; a missing one does not compile. */
type Effects<Name extends keyof Reader> = {
  readonly [
    Method in Exclude<keyof Transaction[Name], keyof Reader[Name]>
  ]: Transaction[Name][Method] extends (...args: infer Args) => unknown ? Effect<Args> : never;
};

const nothing = (): null => null;
const credentials = (): Change => 'credentials';
const anything = (): Change => 'anything';

/** Verifies are answered from these tables, and from no others. */
const effects: {
  readonly [
    Name in 'accounts' | 'products' | 'licenses' | 'snapshots' | 'tokens' | 'oldCredentials'
  ]: Effects<Name>;
} = {
  accounts: { add: nothing, keyDigest: nothing, setKeyDigest: credentials },
  products: { add: anything, secretDigest: nothing, setSecretDigest: credentials, put: anything },
  licenses: {
    // That there was none is not remembered.
    add: nothing,
    change: ({ licenseKey }) => ({ licenseKey }),
    setState: ({ licenseKey }) => ({ licenseKey }),
  },
  snapshots: {
    put: ({ license: { licenseKey } }) => ({ licenseKey }),
    setLocal: (licenseKey) => ({ licenseKey }),
    remove: (licenseKey) => ({ licenseKey }),
    // It decides only for how long an answer is repeated.
    touch: nothing,
    shiftWaits: nothing,
    addAlias: anything,
    startOver: anything,
    moveAliases: anything,
  },
  tokens: {
    add: credentials,
    remove: credentials,
    // With a token is remembered when it was last used.
    setLastUsed: credentials,
  },
  oldCredentials: { put: credentials, remove: credentials, prune: credentials },
};

/** The same tables, whose changes are collected; an authority's need not be all of them. */
export function collectFrom<Tables extends Partial<Record<keyof typeof effects, object>>>(
  tables: Tables,
  changes: Pick<Changes, 'add'>,
): Tables {
  const noting = Object.entries(effects).flatMap(([name, ofTable]) => {
    const table = tables[name as keyof typeof effects] as Record<string, Effect<unknown[]>> | undefined;
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
  return { ...tables, ...(Object.fromEntries(noting) as object) };
}
