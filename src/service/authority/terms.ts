import type { Product } from '../../domain/catalogue.ts';
import type { License } from '../../domain/license.ts';
import { done, failWithFaults, type Result } from '../../domain/problem/problem.ts';
import { changedTerms, withStatus, type TermsChange } from '../../domain/terms.ts';
import { addSpan, isInstant, parseSpan } from '../../domain/time.ts';
import { endsToReport } from '../ends.ts';
import { recordChange } from '../history.ts';
import type { Context } from '../ports.ts';
import type { AuthorityTransaction } from '../tables.ts';
import { changedLeaseTerms } from './catalogue.ts';
import { licenseToChange, type OfLicense } from './license-of-tenant.ts';

/** Changes the terms of a license. */
export async function updateLicense(
  transaction: AuthorityTransaction,
  { change, ...which }: OfLicense & { change: TermsChange },
  context: Context,
): Promise<Result<License>> {
  const found = await licenseToChange(transaction, which);
  return found.ok ? await changeTerms(transaction, { ...found.value, change, as: 'update' }, context) : found;
}

/** Moves the end of a license by a span such as `1y`: from its end if that is in the future, else from now. */
export async function renewLicense(
  transaction: AuthorityTransaction,
  { span, ...which }: OfLicense & { span: string },
  context: Context,
): Promise<Result<License>> {
  const found = await licenseToChange(transaction, which);
  if (!found.ok) return found;
  const { expiresAt = null } = found.value.license;
  if (expiresAt === null) {
    const detail = 'The license has no end, so it needs no renewal.';
    return failWithFaults([{ parameter: 'for', code: 'never_ends', detail }]);
  }
  const renewedTo = endAfter(span, Math.max(expiresAt, context.now));
  if (!renewedTo.ok) return renewedTo;
  const change = { expiresAt: renewedTo.value };
  return await changeTerms(transaction, { ...found.value, change, as: 'renew' }, context);
}

/** The end of a license that is valid for a span, in whole seconds. */
export function endAfter(span: string, from: number): Result<number> {
  const parsed = parseSpan(span);
  const end = parsed === null ? NaN : Math.floor(addSpan(from, parsed) / 1_000) * 1_000;
  if (isInstant(end)) return done(end);
  return failWithFaults([
    { parameter: 'for', code: 'out_of_range', detail: 'The end must be before the year 10000.' },
  ]);
}

type ChangeTerms = { license: License; product: Product; change: TermsChange; as: 'update' | 'renew' };

async function changeTerms(
  transaction: AuthorityTransaction,
  { license, product, change, as }: ChangeTerms,
  context: Context,
): Promise<Result<License>> {
  const fault = ownLeaseTermsFault(product, change, license);
  if (fault !== null) return fault;
  const terms = changedTerms(license, change, product.licenseTerms.expiryGraceMs);
  const after = { ...license, ...terms, revision: (license.revision ?? 0) + 1 };
  const before = changedTerms(license, {}, product.licenseTerms.expiryGraceMs);
  if (JSON.stringify(before) === JSON.stringify(terms))
    return { ...done(withStatus(license, context.now)), unchanged: true };
  await transaction.licenses.setTerms(after);
  await recordChange(transaction.history, { change: as, before: license, after }, context);
  if (as === 'renew') transaction.events.add({ type: 'license.renewed', subject: license.licenseKey });
  return done(withStatus(after, context.now));
}

/** Why a license cannot have such terms for its leases; null: it can. */
export function ownLeaseTermsFault(
  { leaseTerms, licenseTerms }: Product,
  change: TermsChange,
  before: Pick<License, 'terms'> = {},
): ReturnType<typeof failWithFaults> | null {
  const { leaseTermMs, leaseRefreshMs } =
    changedTerms(before, change, licenseTerms.expiryGraceMs).terms ?? {};
  const own = {
    ...(leaseTermMs !== undefined && { termMs: leaseTermMs }),
    ...(leaseRefreshMs !== undefined && { refreshMs: leaseRefreshMs }),
  };
  const changed = changedLeaseTerms(leaseTerms, own);
  return changed.ok ? null : changed;
}

/** Up to when the ends of licenses were reported. */
const reportedUntil = {
  'license.expiring': 'licenses_expiring_reported',
  'license.expired': 'licenses_expired_reported',
};

/** Reports the licenses that end in `expiringMs`, and those that have ended. Returns how many were reported. */
export async function recordLicenseEnds(
  transaction: AuthorityTransaction,
  { expiringMs }: { expiringMs: number },
  { now }: Pick<Context, 'now'>,
): Promise<Result<{ events: number }>> {
  const expiring = await report(transaction, {
    type: 'license.expiring',
    which: 'date',
    until: now + expiringMs,
  });
  const expired = await report(transaction, { type: 'license.expired', which: 'grace', until: now });
  return done({ events: expiring + expired });
}

async function report(
  { settings, licenses, events }: AuthorityTransaction,
  { type, which, until }: { type: keyof typeof reportedUntil; which: 'date' | 'grace'; until: number },
): Promise<number> {
  const ends = await endsToReport(settings, { name: reportedUntil[type], until }, (...range) =>
    licenses.ending(which, ...range),
  );
  for (const { key } of ends) events.add({ type, subject: key });
  return ends.length;
}
