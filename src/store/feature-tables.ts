import type { Reader, Transaction, Change } from '../service/tables.ts';
import type { Engine, On, Sql, WritingSql } from './sql.ts';

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

/** Tables on one of the engines, by their names. */
export type AllOn<E extends Engine, Tables> = { readonly [Name in keyof Tables]: On<E, Tables[Name]> };

/** Tables with statements of their own on an engine. */
type TablesOn<E extends Engine> = {
  reads(sql: Sql<E>): Partial<AllOn<E, Reader>>;
  tables(sql: WritingSql<E>): Partial<AllOn<E, Transaction>>;
};

/** The tables of a feature. Those of `local` only an agent or a holder has. */
export type FeatureTables = {
  readonly reads?: <E extends Engine>(sql: Sql<E>) => Partial<AllOn<E, Reader>>;
  readonly tables?: <E extends Engine>(sql: WritingSql<E>) => Partial<AllOn<E, Transaction>>;
  readonly byEngine?: { readonly [E in Engine]: TablesOn<E> };
  local?: {
    reads(sql: Sql<'sqlite'>): Partial<Reader>;
    tables(sql: WritingSql<'sqlite'>): Partial<Transaction>;
  };
  /** Which cached responses the calls of its tables invalidate. */
  effects?: TableEffects;
};
