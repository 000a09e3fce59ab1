import { endCell, isEmptyCell, isNoEnd } from '../import.ts';
import { moneyOf } from '../../../../domain/money.ts';
import { MappingFault } from './mapping-fault.ts';

/** Reads a cell of a file as the text of an import; an empty text is no value. */
export interface CellReader {
  /** Null: the cell is not understood, and its row is rejected. */
  readonly read: (cell: string) => string | null;
  /** Why a row is rejected, after `The row`. */
  readonly fault: (cell: string) => string;
}

export const states: ReadonlySet<string> = new Set(['enabled', 'refunded']);
export const amounts: ReadonlySet<string> = new Set(['amount_off', 'minimum_purchase_amount']);

export const dates: ReadonlySet<string> = new Set([
  'date',
  'refunded_at',
  'expires_at',
  'start_date',
  'end_date',
]);
/** The orders of a date, and its parts in them. */
export const dateOrders: Readonly<Record<string, RegExp>> = {
  'D.M.Y': /^(?<day>\d{1,2})\.(?<month>\d{1,2})\.(?<year>\d{4})(?<rest>\D.*)?$/,
  'D/M/Y': /^(?<day>\d{1,2})\/(?<month>\d{1,2})\/(?<year>\d{4})(?<rest>\D.*)?$/,
  'M/D/Y': /^(?<month>\d{1,2})\/(?<day>\d{1,2})\/(?<year>\d{4})(?<rest>\D.*)?$/,
};

/** Whether `values` says how a column of an import is read: `active|inactive` for `enabled`, `money` for an amount. */
export function isReadBy(ours: string, values: string): boolean {
  if (states.has(ours)) return values.includes('|');
  if (dates.has(ours)) return Object.hasOwn(dateOrders, values);
  return amounts.has(ours) && (values === 'money' || values === 'cents');
}

/** What must be added to `--map OURS=THEIRS` if only words or a unit tell what its cells mean. */
export function missingValues(ours: string, isPlainState: boolean): string | null {
  if (states.has(ours) && !isPlainState) return ':active|inactive, with the words that the file has';
  return amounts.has(ours) ? ':money for numbers such as 5.00, or :cents' : null;
}

/** Throws if a word is on both sides. */
export function readerBy({ ours, theirs, values }: How): CellReader {
  if (dates.has(ours)) return dateReader(theirs, values);
  if (ours === 'seats') return limitReader;
  return states.has(ours) ? stateReader({ ours, theirs, values }) : amountReader(theirs, values);
}

type How = { ours: string; theirs: string; values: string };

/** Words for a key that is not valid because its end has passed. */
const expiredWords: ReadonlySet<string> = new Set(['expired', 'abgelaufen']);

/**
 * Reads words: those before the bar are true. `-` is an empty cell, `*` any other cell. A key that is not enabled because
 * it has expired is `expired`.
 */
function stateReader({ ours, theirs, values }: How): CellReader {
  const [yes = [], no = [], ...more] = values.split('|').map((side) => side.split(',').map(wordOf));
  const twice = yes.find((word) => no.includes(word));
  if (more.length > 0 || twice !== undefined)
    throw new MappingFault(
      'map',
      `${ours}=${theirs}:${values}`,
      'use the words for true, one bar, and the words for false',
    );
  const sideOf = (word: string): string | null => {
    if (yes.includes(word)) return 'true';
    return no.includes(word) ? 'false' : null;
  };
  const read = (cell: string): string | null => {
    const word = wordOf(cell);
    const side = sideOf(word) ?? sideOf('*');
    return side === 'false' && ours === 'enabled' && expiredWords.has(word) ? 'expired' : side;
  };
  const end = ours === 'enabled' ? `: map the end of keys as expires_at=${theirs}` : '';
  return {
    read,
    fault: (cell) => `has ${shown(cell)} in ${theirs}, which is not in ${values}${isDated(cell) ? end : ''}`,
  };
}

/** Whether a cell is a date, also in an order that a person must confirm. */
export function isDated(cell: string): boolean {
  const text = cell.trim().toUpperCase();
  if (!/^\d{1,4}[-./]\d/.test(text)) return false;
  return endCell.safeParse(text).success || Object.values(dateOrders).some((order) => order.test(text));
}

/** Reads the limit of a store in which 0 is no limit. */
const limitReader: CellReader = {
  read: (cell) => (cell === '0' ? '' : cell),
  fault: () => '',
};

/** A word in lower case; every way to write no value is the same word. */
export function wordOf(text: string): string {
  const word = text.trim().toLowerCase();
  return isEmptyCell(word) ? '' : word;
}

function amountReader(theirs: string, unit: string): CellReader {
  const cents = (cell: string): number | null => (/^\d{1,15}$/.test(cell) ? Number(cell) : null);
  const valueOf = unit === 'cents' ? cents : moneyOf;
  return {
    read: (cell) => (isEmptyCell(cell) ? '' : (valueOf(cell.trim())?.toString() ?? null)),
    fault: (cell) => `has ${shown(cell)} in ${theirs}, which is no amount`,
  };
}

function dateReader(theirs: string, order: string): CellReader {
  const read = (cell: string): string | null => {
    if (isEmptyCell(cell)) return '';
    if (isNoEnd(cell)) return cell;
    const { year = '', month = '', day = '', rest = '' } = dateOrders[order]?.exec(cell.trim())?.groups ?? {};
    return year === '' ? null : `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}${rest}`;
  };
  return { read, fault: (cell) => `has ${shown(cell)} in ${theirs}, which is not ${order}` };
}

/** Accepts the first value of a column, and no other: with `--product`, a file must have rows of one product only. */
export function sameReader(theirs: string): CellReader {
  let first: string | undefined;
  return {
    read: (cell) => {
      first ??= cell;
      return cell === first ? '' : null;
    },
    fault: (cell) =>
      `has ${shown(cell)} in ${theirs}, and the first row ${shown(first ?? '')}: import each product by itself, or leave out --product`,
  };
}

function shown(cell: string): string {
  return JSON.stringify(cell.slice(0, 32));
}
