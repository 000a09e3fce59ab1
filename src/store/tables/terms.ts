import { hasTerms, type LicenseTerms } from '../../domain/terms.ts';
import type { End } from '../../domain/time.ts';
import type { LicenseReads, LicenseTable } from '../../service/tables.ts';
import type { Engine, On, Sql, SqlValue, WritingSql } from '../sql.ts';

/* The columns of the terms of a license, in tables of both engines. */

export type StoredTerms = {
  expiresAt: number | null;
  graceUntil: number | null;
  usesLimit: number | null;
  terms: LicenseTerms | null;
};

export const termColumns = 'expires_at, grace_until, uses_limit, terms JSON';

/** The row with what a license has of them. */
export function withTermsIn<Row extends StoredTerms>(row: Row): Omit<Row, keyof StoredTerms> {
  const { expiresAt, graceUntil, usesLimit, terms, ...others } = row;
  return { ...others, ...termsIn({ expiresAt, graceUntil, usesLimit, terms }) };
}

/** A license without terms has no members for them. */
export function termsIn(row: Partial<StoredTerms>): Partial<StoredTerms> {
  return hasTerms(row) ? termsOf(row) : {};
}

/** The values of the columns. */
export function termsOf({
  expiresAt = null,
  graceUntil = null,
  usesLimit = null,
  terms = null,
}: Partial<StoredTerms>): StoredTerms {
  return { expiresAt, graceUntil, usesLimit, terms };
}

/** The same as parameters, in the order of the columns. */
export function termValues(given: Partial<StoredTerms>): SqlValue[] {
  const { expiresAt, graceUntil, usesLimit, terms } = termsOf(given);
  return [expiresAt, graceUntil, usesLimit, terms === null ? null : JSON.stringify(terms)];
}

/** What both engines read alike. */
export function termReads<E extends Engine>(sql: Sql<E>): On<E, Pick<LicenseReads, 'ending'>> {
  const read = (end: string) =>
    sql.all<End>(`SELECT ${end} AS at, license_key AS key FROM latchkey.license
      WHERE expires_at IS NOT NULL AND ${end} >= $1 AND (${end} > $1 OR license_key > $2) AND ${end} <= $3 AND enabled
      ORDER BY ${end}, license_key LIMIT $4`);
  const byDate = read('expires_at');
  const byGrace = read('coalesce(grace_until, expires_at)');
  return {
    ending: (which, { at, key }, until, limit) =>
      (which === 'date' ? byDate : byGrace)(at, key, until, limit),
  };
}

/** What both engines do alike. The revision grows, so that agents get to know the terms. */
export function termWrites<E extends Engine>(
  sql: WritingSql<E>,
): On<E, Pick<LicenseTable, 'setTerms' | 'setGrace'>> {
  const setTerms =
    sql.run(`UPDATE latchkey.license SET expires_at = $2, grace_until = $3, uses_limit = $4, terms = $5,
    revision = revision + 1 WHERE license_key = $1`);
  const setGrace = sql.run(`UPDATE latchkey.license SET revision = revision + 1,
    grace_until = CASE WHEN $2::bigint > 0 THEN expires_at + $2::bigint END
    WHERE license_key = $1 AND expires_at IS NOT NULL`);
  return {
    setTerms: ({ licenseKey, ...terms }) => setTerms(licenseKey, ...termValues(terms)),
    setGrace,
  };
}
