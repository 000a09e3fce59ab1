import type { ParameterFault } from './problem/problem.ts';
import { isAboveLimit, type LicenseEnd, type LicenseStatus, type LicenseTerms } from './terms.ts';
import { isLongerThan, plainText } from './text.ts';

/** The record behind a license key (specification 2.2), with its terms if it has any. */
export type License = LicenseEnd & {
  licenseKey: string;
  /** `product_link` on the wire. */
  productKey: string;
  buyerEmail: string;
  uses: number;
  enabled: boolean;
  /** Epoch ms. */
  createdAt: number;
  terms?: LicenseTerms | null;
  /** The license key that took the place of this one, in the store of an authority. It is in no answer to a program. */
  replacedBy?: string;
  /** How a license with terms stands, in an answer. */
  status?: LicenseStatus;
  /** Further members from an agent's upstream, unchanged. */
  extra?: LicenseExtra;
  /** Grows with each change of the license in its store. It is in no body; agents get it in a header. Absent: unknown. */
  revision?: number;
};

/**
 * Members beyond specification 2.2, such as the name of the product; at most 1 KiB of JSON. Of a store that does not speak
 * the specification: its answer without the count, about 8 KiB at most (src/stores/).
 */
export type LicenseExtra = Readonly<Record<string, unknown>>;

/** A license and its sale. Null: the license was not sold here, or not refunded. */
export type SoldLicense = License & { purchaseId: string | null; refundedAt: number | null };

/** The name of the product at the upstream; null if the upstream has not sent it. */
export function upstreamProductName({ extra }: License): string | null {
  const name = extra?.['product_name'];
  return typeof name === 'string' ? name : null;
}

/** A license after a change. `appliedRevision`: the revision that the change has made; absent: it had no effect. */
export type ChangedLicense = License & { appliedRevision?: number };

/** The maximum `uses` of a new, imported or upstream license. Counts are exact up to 2^53. */
export const maxInitialUses = 1_000_000_000_000_000;

/** What can happen to a license (specification 3.1). */
export type LicenseTrigger = 'usage' | 'decrease' | 'enable' | 'disable' | 'refund';

/** What the history of a license records: also what a seller does with it. */
export type LicenseEntry = LicenseTrigger | 'renew' | 'update' | 'rekey' | 'transfer' | 'set_uses';

type EnabledState = 'enabled' | 'disabled';

/** The transitions of `enabled`; a missing cell does not compile. */
export const licenseTransitions: Record<EnabledState, Record<LicenseTrigger, EnabledState>> = {
  enabled: {
    usage: 'enabled',
    decrease: 'enabled',
    enable: 'enabled',
    disable: 'disabled',
    refund: 'disabled',
  },
  disabled: {
    usage: 'disabled',
    decrease: 'disabled',
    enable: 'enabled',
    disable: 'disabled',
    refund: 'disabled',
  },
};

/** The count after a trigger. A decrease stops at 0. */
export function countAfter(uses: number, trigger: LicenseTrigger): number {
  switch (trigger) {
    case 'usage':
      return uses + 1;
    case 'decrease':
      return uses > 0 ? uses - 1 : uses;
    case 'enable':
    case 'disable':
    case 'refund':
      return uses;
    default:
      return trigger satisfies never;
  }
}

/** Whether a change had no effect, such as enabling an enabled license or decreasing a count of 0. */
export function isSameState(before: License, after: License): boolean {
  return before.uses === after.uses && before.enabled === after.enabled;
}

/**
 * The license after a trigger; the only function that changes one. A use beyond the limit leaves it as it is. A key that was
 * replaced stays disabled.
 */
export function licenseAfter(license: License, trigger: LicenseTrigger): License {
  const state = licenseTransitions[license.enabled ? 'enabled' : 'disabled'][trigger];
  const uses = countAfter(license.uses, trigger);
  if (trigger === 'usage' && isAboveLimit(uses, license)) return license;
  return { ...license, enabled: state === 'enabled' && license.replacedBy === undefined, uses };
}

const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const generated = /^[A-HJ-NP-Z2-9]{5}(?:-[A-HJ-NP-Z2-9]{5}){3}$/i;
/** Matches a key in the generated format within a text. */
export const containsGenerated: RegExp = /[A-HJ-NP-Za-hj-np-z2-9]{5}(?:-[A-HJ-NP-Za-hj-np-z2-9]{5}){3}/;
/** The limit for a license key that is issued, imported or leased. A key that is looked up may be longer. */
export const maxLicenseKeyLength = 1_024;
/** The same limit in UTF-8: some databases store at most about 2,700 bytes in a row of an index. */
export const maxLicenseKeyBytes = 2_048;

/** The number of random bytes for one license key. */
export const licenseKeyBytes = 20;

/**
 * Generates a license key: four groups of five letters. The alphabet has 32 letters, so the low five bits of a byte
 * choose a letter without bias.
 */
export function licenseKeyFrom(bytes: Uint8Array): string {
  const letters = Array.from(bytes.subarray(0, licenseKeyBytes), (byte) => alphabet.charAt(byte & 31));
  return [0, 5, 10, 15].map((start) => letters.slice(start, start + 5).join('')).join('-');
}

/**
 * Normalizes a license key to its stored form: trims white space, and ignores the letter case of a key in the generated
 * format. Null if nothing is left.
 */
export function parseLicenseKey(text: string): string | null {
  return storedForm(text.trim());
}

/** The license key that was most likely issued, from a pasted key: see `plainText`. */
export function parsePlainLicenseKey(text: string): string | null {
  return storedForm(plainText(text).trim());
}

/**
 * The license keys that a pasted text may stand for, in the order in which they are looked up: the text itself, because a
 * store may have issued any text; then without invisible and typographic characters; then without quotes, a label before
 * it and punctuation behind it.
 */
export function licenseKeysIn(text: string): readonly string[] {
  const bare = withoutSurroundings(plainText(text).trim());
  const found = [parseLicenseKey(text), parsePlainLicenseKey(text), storedForm(regrouped(bare) ?? bare)];
  return [...new Set(found.filter((licenseKey) => licenseKey !== null))];
}

/** A key in the generated format that a pasted text stands for; null if there is none. */
export function generatedKeyIn(text: string): string | null {
  return licenseKeysIn(text).find((licenseKey) => generated.test(licenseKey)) ?? null;
}

/** Of a masked license key the end is shown: at most so many characters, and at most one in so many of the key. */
export const shownCharacters = 4;
export const shownPart = 3;

export function maskedKey(licenseKey: string): string {
  const characters = Array.from(licenseKey);
  const shown = Math.min(shownCharacters, Math.floor(characters.length / shownPart));
  return `…${characters.slice(characters.length - shown).join('')}`;
}

/** What a text is that is not a license key, for a person; null if it may be a license key. */
export function describeMistake(text: string): string | null {
  if (/^(?:https?:\/\/|www\.)/i.test(text)) return 'a web address';
  return /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(text) ? 'an e-mail address' : null;
}

/** Words before a key, such as `License key:`. */
const label = /^[\p{L} _-]{1,40}[:=](?!\/\/)/u;
const quotes = '"\'`´„“”‚‘’«»‹›';
const opening = `${quotes}<([{`;
const closing = `${quotes}>)]}.,;:!?`;

function withoutSurroundings(text: string): string {
  let bare = text;
  for (let before = ''; before !== bare;) {
    before = bare;
    bare = bare.replace(label, '').trim();
    while (bare !== '' && opening.includes(bare.charAt(0))) bare = bare.slice(1);
    while (bare !== '' && closing.includes(bare.charAt(bare.length - 1))) bare = bare.slice(0, -1);
  }
  return bare;
}

/** A key in the generated format whose groups are separated in another way, or not at all; null if it is not such a key. */
function regrouped(text: string): string | null {
  const letters = text.replaceAll(/[\s_-]/g, '');
  return /^[A-HJ-NP-Z2-9]{20}$/i.test(letters)
    ? [0, 5, 10, 15].map((start) => letters.slice(start, start + 5)).join('-')
    : null;
}

/** Whether a license key is spelled plainly. Keys that look alike count as the same key. */
function isPlainLicenseKey(licenseKey: string): boolean {
  return plainText(licenseKey) === licenseKey;
}

function storedForm(trimmed: string): string | null {
  if (trimmed === '') return null;
  return generated.test(trimmed) ? trimmed.toUpperCase() : trimmed;
}

/** Whether a license key is too long to be issued. */
export function isTooLongKey(licenseKey: string): boolean {
  return isLongerThan(licenseKey, maxLicenseKeyLength) || Buffer.byteLength(licenseKey) > maxLicenseKeyBytes;
}

/** Why a license key is not issued, or not asked for at an issuer of leases. */
export const tooLongKey: ParameterFault = {
  parameter: 'license_key',
  code: 'too_long',
  detail: `license_key must have at most ${maxLicenseKeyLength} characters and ${maxLicenseKeyBytes} bytes.`,
};

/** Why a license key that is not plain is not issued. */
const malformedKey = {
  parameter: 'license_key',
  code: 'malformed',
  detail: 'license_key must not contain invisible characters, full-width letters or typographic dashes.',
} as const;

const severalKeys = {
  parameter: 'license_key',
  code: 'malformed',
  detail: 'license_key has several keys: give each of them a row of its own.',
} as const;

const partOfKeys = /^[\w.+/=~-]{4,}$/;
/** A part of keys with only spaces between them: some stores also write one key in groups with spaces. */
const keyWithDashes = /^(?=.{8})[\w.+/=~]+(?:-[\w.+/=~]+)+$/;

/** Whether a text is a list of license keys, as a store writes the keys of one order into one cell. */
function isListOfKeys(text: string): boolean {
  const [parts, spaced] = [/[,;|\r\n\t]/, / (?:[/&+] |and )?|<br ?\/?>/i].map((separator) =>
    text
      .split(separator)
      // The texts of a JSON list.
      .map((part) => part.trim().replaceAll(/^\[?"|"\]?$/g, ''))
      .filter((part) => part !== ''),
  ) as [string[], string[]];
  if (parts.length > 1) return /[\r\n]/.test(text) || parts.every((part) => partOfKeys.test(part));
  return spaced.length > 1 && spaced.every((part) => keyWithDashes.test(part));
}

/** Why a license key cannot be issued; null if it can. */
export function issuedKeyFault(licenseKey: string): typeof malformedKey | typeof severalKeys | null {
  if (!isPlainLicenseKey(licenseKey)) return malformedKey;
  return isListOfKeys(licenseKey) ? severalKeys : null;
}

/** Whether a text contains a key in the generated format, and so must not be logged. */
export function containsLicenseKey(text: string): boolean {
  return containsGenerated.test(text);
}

/** How many aliases of a license key an agent keeps. A limit is needed because a caller can send millions. */
export const maxAliases = 16;

/** The members of a license that changes modify. `expiresAt`: of a change of the terms. */
export type LicenseState = Pick<License, 'uses' | 'enabled' | 'expiresAt'>;

/** How many changes of one license key are kept. */
export const maxHistoryEntries = 1_000;

/** One recorded change of a license. An agent records the change before the upstream has it. */
export type HistoryEntry = {
  licenseKey: string;
  /** Epoch ms. */
  at: number;
  change: LicenseEntry;
  /** Who requested the change: the name of a credential (`Principal.credential`), never its secret. */
  credential: string;
  before: LicenseState;
  after: LicenseState;
};
