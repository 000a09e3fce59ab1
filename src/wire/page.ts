import { z } from 'zod';
import { maxOffset, type Page, type PageKey } from '../domain/page.ts';
import { integer, parameters, type ParameterSet } from './parameters.ts';

/** The types of the sort key of each list: cursors contain them. */
const sortKeys = {
  accounts: ['string'],
  activations: ['string'],
  acts: ['number', 'number'],
  agents: ['number'],
  changes: ['number'],
  collections: ['string'],
  coupons: ['number'],
  deliveries: ['number'],
  licenses: ['string'],
  operations: ['number'],
  products: ['string'],
  purchases: ['number', 'string'],
  redemptions: ['number'],
  tokens: ['string'],
  webhooks: ['string'],
} as const;

/** A list, by the name of its member in the response. */
export type ListName = keyof typeof sortKeys;

/** Longer than any cursor in a response, which has a whole license key. */
const maxCursorLength = 6_000;
const cursorPattern = /^[A-Za-z0-9_-]+$/;

const offset = integer(0)
  .refine(
    (input) => input <= maxOffset,
    `out_of_range: must be at most ${maxOffset}: follow the Link of each page instead`,
  )
  .meta({ maximum: maxOffset });

const notACursor = 'invalid_cursor: must be the one in the Link of a page of this list';

/** The parameters of every list (specification 4.2 and 8), and its cursor. */
export function pageShape(list: ListName) {
  const cursor = z
    .string(notACursor)
    .min(1, notACursor)
    .max(maxCursorLength, { error: notACursor, abort: true })
    .regex(cursorPattern, notACursor)
    .meta({ description: 'From the `Link` of the page before. Its form may change.' })
    .transform((input) => readCursor(list, input))
    .refine((key): key is PageKey => key !== null, notACursor);
  return {
    limit: integer(1, 100).prefault(10),
    offset: offset.prefault(0),
    cursor: cursor.optional(),
  };
}

/** The parameters of a list without filters. */
export function pageQuery(list: ListName): ParameterSet<Page> {
  return parameters(pageShape(list));
}

/** Writes the cursor of a row. The cursor names its list, so that no other list accepts it. */
export function writeCursor(list: ListName, key: PageKey): string {
  return Buffer.from(JSON.stringify([list, ...key])).toString('base64url');
}

/** The key of a row; null if the cursor is not of this list. */
function readCursor(list: ListName, input: string): PageKey | null {
  const [name, ...key] = parseArray(Buffer.from(input, 'base64url').toString());
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

/** Refuses `\0` and broken surrogates: no key has them, and some databases cannot compare them. */
function isOf(types: readonly string[]): (value: unknown, index: number) => boolean {
  return (value, index) =>
    typeof value === types[index] &&
    (typeof value === 'string' ? value.isWellFormed() && !value.includes('\0') : Number.isSafeInteger(value));
}
