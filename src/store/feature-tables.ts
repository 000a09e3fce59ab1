import type { Reader, Transaction } from '../service/tables.ts';
import type { TableEffects } from './effects.ts';
import type { Engine, On, Sql, WritingSql } from './sql.ts';

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
