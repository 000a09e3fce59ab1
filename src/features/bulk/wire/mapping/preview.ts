import { Readable } from 'node:stream';
import {
  type CsvFormat,
  type CsvRow,
  CsvUnreadable,
  foreignWord,
  readCsv,
  separatorFault,
  separatorNames,
} from '../../../../wire/csv.ts';
import { looksLikeState } from './column-names.ts';
import { ColumnMapping, type ColumnOptions, type Columns } from './columns.ts';
import { amounts, states } from './cell-readers.ts';
import { type Guess, guessColumns, guessProfile, needsOrder, type Word, wordsOf } from './guess.ts';
import type { ProfileName } from './profiles.ts';

/** What a person has said about a file; the rest is guessed, the columns only with `guess`. */
export type PreviewOptions = Omit<ColumnOptions, 'from'> & {
  /** `other`: none of the profiles. */
  readonly from?: ProfileName | 'other' | undefined;
  readonly separator?: string | undefined;
  readonly encoding?: CsvFormat['encoding'] | undefined;
  readonly guess: boolean;
};

export type PreviewColumn = {
  readonly name: string;
  /** The cells of the first rows. */
  readonly values: readonly string[];
  /** The column of the import; null: it is not imported. */
  readonly readAs: string | null;
  /** How its cells are read, as in `--map`; null: as they are, or a person must say it. */
  readonly how: string | null;
  /** The profile says it. */
  readonly isByProfile: boolean;
  /** It must be mapped or dismissed. */
  readonly isState: boolean;
  /** It has dates whose order a person must confirm. */
  readonly needsOrder: boolean;
  readonly words: readonly Word[];
};

export type Preview = {
  readonly format: CsvFormat;
  /** A word of the file with a letter that shows whether the encoding is right; '' if there is none. */
  readonly reading: string;
  readonly from: ProfileName | null;
  readonly columns: readonly PreviewColumn[];
  readonly missing: readonly string[];
  /** The first rows as they would be imported. */
  readonly rows: readonly CsvRow[];
};

const rowsShown = 3;
const charactersShown = 200;
/** Of a file with many columns, fewer rows are looked at. */
const mostCells = 200_000;

/**
 * Says how the beginning of a file is read. Throws a `CsvUnreadable` if it is no CSV, and a `MappingFault` for a mapping
 * that does not fit it.
 */
export async function previewFile(
  bytes: Uint8Array,
  columns: Columns,
  options: PreviewOptions,
  now: number,
): Promise<Preview> {
  const { format, header, rows } = await recognize(bytes, options);
  const cellsOf = (name: string): readonly string[] =>
    rows.flatMap((row) => ('cells' in row ? [row.cells[name] ?? ''] : []));
  const file = header.filter((name) => name !== '').map((name) => ({ name, cells: cellsOf(name) }));
  const hasProfiles = columns.optional.includes('refunded');
  const said = options.from ?? (options.guess && hasProfiles ? guessProfile(header) : null);
  const from = said === 'other' ? null : said;
  const guesses = options.guess && from === null ? guessColumns(file, columns) : file.map(() => null);
  const words = file.map(wordsOf);
  const maps = guesses.map((guess, index) => ({ ...file[index], guess, how: howOf(guess, words[index]) }));
  const map = options.guess
    ? maps.flatMap(({ name = '', guess, how }) => {
        if (guess === null) return [];
        // Only a person can say what its cells mean.
        const isOpen = how === null && guess.as !== name && (states.has(guess.as) || amounts.has(guess.as));
        if (isOpen) return [];
        return [`${guess.as}=${name}${how === null ? '' : `:${how}`}`];
      })
    : [options.map ?? ''];
  const mapping = new ColumnMapping(
    columns,
    { ...options, from: from ?? undefined, map: map.join(',') },
    now,
  );
  mapping.assign(header);
  if (from !== null) mapping.rejectWithoutState();
  // A profile reads some columns only as conditions.
  const isLost = (name: string): boolean =>
    mapping.ignored.includes(name) && !mapping.dismissed.includes(name);
  return {
    format,
    reading: foreignWord(bytes, format.encoding),
    from,
    columns: file.map(({ name, cells }, index): PreviewColumn => {
      const { guess = null, how = null } = maps[index] ?? {};
      const source = mapping.sourceOf(name);
      return {
        name,
        values: cells.slice(0, rowsShown).map((cell) => cell.slice(0, charactersShown).toWellFormed()),
        readAs: source?.ours ?? guess?.as ?? null,
        how: source?.how ?? how,
        isByProfile: source?.isByProfile ?? false,
        isState: looksLikeState(name) && (from === null || isLost(name)),
        needsOrder: needsOrder(cells),
        words: words[index] ?? [],
      };
    }),
    missing: mapping.missing,
    rows: rows
      .slice(0, rowsShown)
      .map((row) => mapping.convert(row))
      .filter((row) => row !== null),
  };
}

/** The words of a state in the notation of `--map`, if the meaning of each is known. */
function howOf(guess: Guess | null, words: readonly Word[] = []): string | null {
  if (guess?.as !== 'enabled' && guess?.as !== 'refunded') return guess?.how ?? null;
  const { as } = guess;
  if (words.length === 0) return null;
  if (words.some((word) => word[as] === null)) return null;
  const side = (yes: boolean): string =>
    words
      .filter((word) => word[as] === yes)
      .map(({ word }) => word)
      .join(',');
  return `${side(true)}|${side(false)}`;
}

type File = { format: CsvFormat; header: readonly string[]; rows: readonly CsvRow[] };

/** Reads a file in the format that it seems to have, unless a person has said another. */
async function recognize(bytes: Uint8Array, { separator, encoding }: PreviewOptions): Promise<File> {
  try {
    return await read(bytes, {
      separator: separatorNames[separator ?? 'comma'] ?? ',',
      encoding: encoding ?? 'utf-8',
    });
  } catch (error) {
    const other = error instanceof CsvUnreadable ? error.other : null;
    const isGiven = other?.option === 'separator' ? separator !== undefined : encoding !== undefined;
    if (other === null || isGiven) throw error;
    const more = { separator, encoding, guess: false, [other.option]: other.value };
    return await recognize(bytes, more);
  }
}

async function read(bytes: Uint8Array, format: CsvFormat): Promise<File> {
  let header: readonly string[] = [];
  const rows: CsvRow[] = [];
  const toColumns = (names: readonly string[]): readonly string[] => {
    const fault = separatorFault(names);
    if (fault !== null) throw fault;
    header = names;
    return names;
  };
  try {
    for await (const more of readCsv(Readable.from([bytes]), toColumns, format)) {
      const room = Math.ceil(mostCells / header.length) - rows.length;
      for (const row of more.slice(0, room)) rows.push(row);
      if (more.length >= room) break;
    }
  } catch (error) {
    // The file may go on after these bytes; the import says what is wrong with it.
    if (!(error instanceof CsvUnreadable) || rows.length === 0) throw error;
  }
  return { format, header, rows };
}
