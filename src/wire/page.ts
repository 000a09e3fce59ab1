import type { z } from 'zod';
import { maxOffset, type Page, type PageKey } from '../domain/page.ts';
import { integer, kind, orDefault, refined, refuse } from './types.ts';
import { parameters, type ParameterSet } from './parameters.ts';

/** What each list is sorted by: what its cursors hold. */
const sortKeys = {
  accounts: ['string'],
  acts: ['number', 'number'],
  changes: ['number'],
  collections: ['string'],
  coupons: ['number'],
  licenses: ['string'],
  operations: ['number'],
  products: ['string'],
  purchases: ['number', 'string'],
  redemptions: ['number'],
  tokens: ['string'],
} as const;

/** A list by the name of its member in the answer. */
export type ListName = keyof typeof sortKeys;

/** Longer than any cursor that an answer has held: a key has at most 100 characters. */
const maxCursorLength = 1_024;
const cursorPattern = /^[A-Za-z0-9_-]+$/;

type PageShape = {
  limit: z.ZodType<number>;
  offset: z.ZodType<number>;
  cursor: z.ZodOptional<z.ZodType<PageKey>>;
};

const offset = refined(integer(0), { maximum: maxOffset }, (given, issues) =>
  given > maxOffset
    ? refuse(issues, 'out_of_range', `must be at most ${maxOffset}: follow the Link of each page instead`)
    : given,
);

/** The parameters of every list (specification 4.2 and 8), and its cursor. */
export function pageShape(list: ListName): PageShape {
  const cursor = kind(
    {
      type: 'string',
      minLength: 1,
      maxLength: maxCursorLength,
      pattern: cursorPattern.source,
      description: 'From the `Link` of the page before. Its form may change.',
    },
    (given, issues) =>
      readCursor(list, given) ??
      refuse(issues, 'invalid_cursor', 'must be the one in the Link of a page of this list'),
  );
  return { limit: orDefault(integer(1, 100), 10), offset: orDefault(offset, 0), cursor: cursor.optional() };
}

/** The parameters of a list that takes no others. */
export function pageQuery(list: ListName): ParameterSet<Page> {
  return parameters(pageShape(list));
}

/** Writes the cursor of a row. It names its list, so that no other list takes it. */
export function writeCursor(list: ListName, key: PageKey): string {
  return Buffer.from(JSON.stringify([list, ...key])).toString('base64url');
}

/** The key of a row; null: no page of this list has such a cursor. */
function readCursor(list: ListName, given: unknown): PageKey | null {
  if (typeof given !== 'string' || given.length > maxCursorLength || !cursorPattern.test(given)) return null;
  const [name, ...key] = parseArray(Buffer.from(given, 'base64url').toString());
  const types = sortKeys[list];
  const isKey = name === list && key.length === types.length && key.every(isOf(types));
  return isKey ? (key as PageKey) : null;
}

function parseArray(text: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}

/** `\0` and broken surrogates are in no key, and not every engine can compare them. */
function isOf(types: readonly string[]): (value: unknown, index: number) => boolean {
  return (value, index) =>
    typeof value === types[index] &&
    (typeof value === 'string' ? value.isWellFormed() && !value.includes('\0') : Number.isSafeInteger(value));
}
