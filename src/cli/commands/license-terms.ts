import { parseDuration } from '../../config/value/unit.ts';
import { addSpan, formatDatetime, isInstant, parseSpan } from '../../domain/time.ts';
import type { LicenseObject } from '../../wire/license.ts';
import { parseEnd } from '../../wire/terms.ts';
import { type Args, textOption, UsageError } from '../command.ts';
import { type Cell, instant } from '../format.ts';

/** The options for the terms of a license. */
export const termsOptions = {
  expires: textOption(
    'The last day on which it is valid (UTC), a datetime, or how long from now, such as 1y or 30d; none: for ever',
  ),
  entitlement: {
    ...textOption('What it unlocks; may be repeated; none: nothing'),
    array: true,
  },
  'uses-limit': textOption('How often it may be used; none: any number of times'),
  seats: textOption('Devices that may use it at the same time; none: as many as its product says'),
  metadata: textOption('What you want to note with it, as a JSON object; none: nothing'),
} as const;

/** The parameters of the options that are given. */
export function readTerms({
  expires,
  entitlement,
  usesLimit,
  seats,
  metadata,
}: Args<typeof termsOptions>): object {
  return {
    ...(expires !== undefined && { expires_at: readEnd(expires) }),
    ...(entitlement !== undefined && { entitlements: readWords(entitlement) }),
    ...(usesLimit !== undefined && { uses_limit: usesLimit }),
    ...(seats !== undefined && { seats }),
    ...(metadata !== undefined && { metadata: metadata === 'none' ? {} : metadata }),
  };
}

/** Words that are repeated options, or have commas between them. */
export function readWords(given: readonly string[]): readonly string[] {
  const words = given.flatMap((each) => each.split(',')).map((word) => word.trim());
  return words.filter((word) => word !== '' && word !== 'none');
}

/** The daemon reads dates and datetimes. */
function readEnd(text: string): string {
  const parsed = parseSpan(text);
  const durationMs = parseDuration(text);
  if (parsed === null && durationMs === undefined) {
    if (parseEnd(text) !== undefined) return text;
    throw new UsageError(
      '--expires must be a date such as 2030-12-31, a datetime, a time from now such as 30d or 1y, or none',
    );
  }
  const end = parsed === null ? Date.now() + (durationMs ?? 0) : addSpan(Date.now(), parsed);
  if (isInstant(end)) return formatDatetime(end);
  throw new UsageError('--expires must be before the year 10000');
}

/** What is shown of the terms of a license. */
export function termFields(license: LicenseObject): Readonly<Record<string, Cell>> {
  const { expires_at: end, grace_until: grace, status, entitlements, seats, metadata } = license;
  return {
    'valid until': end === null ? 'for ever' : instant(end),
    'answered as valid until': status === 'disabled' ? null : instant(grace),
    entitlements: entitlements?.join(', '),
    'own seats': seats,
    metadata: metadata && JSON.stringify(metadata),
  };
}

/** Whether a license is valid, as its seller has set it and as of its end. */
export function stateWord({
  enabled,
  status,
}: Pick<LicenseObject, 'enabled' | 'status'>): 'valid' | 'in grace' | 'ended' | 'disabled' {
  if (status === 'expired') return 'ended';
  if (status === 'grace') return 'in grace';
  return enabled ? 'valid' : 'disabled';
}
