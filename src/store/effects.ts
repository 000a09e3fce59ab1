import type { Change, Reader, Transaction } from '../service/tables.ts';

/** Which cached records a call invalidates; null for none. */
export type Effect<Args extends unknown[]> = (...args: Args) => Change | null;

/** The effect of each method that writes; a missing one does not compile. */
type Effects<Name extends keyof Reader> = {
  readonly [
    Method in Exclude<keyof Transaction[Name], keyof Reader[Name]>
  ]: Transaction[Name][Method] extends (...args: infer Args) => unknown ? Effect<Args> : never;
};

/** The effects of tables that verifies read. */
export type TableEffects = { readonly [Name in keyof Reader]?: Effects<Name> };
