import type { StoreName } from '../domain/header-names.ts';
import type { Dialect as SentDialect } from '../http/dialects.ts';
import type { Dialect as ReceivedDialect } from '../upstream/dialects.ts';

/** A kind of store: what it answers as an upstream, and how this process answers software that was written for it. */
export type Store = {
  /** The form of what is sent under `/api`. */
  readonly sent: SentDialect;
  /** How its responses are understood. */
  readonly received: ReceivedDialect;
};

const folders: Readonly<Record<StoreName, () => Promise<{ store: Store }>>> = {
  specification: () => import('./specification/store.ts'),
  payhip: () => import('./payhip/store.ts'),
};

/** A store that the configuration names. Only its folder is loaded. */
export async function loadStore(name: StoreName): Promise<Store> {
  return (await folders[name]()).store;
}
