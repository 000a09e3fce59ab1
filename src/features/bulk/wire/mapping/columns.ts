import { endCell, isEmptyCell } from '../import.ts';
import { type CsvRow, CsvUnreadable, findMiswritten, separatorFault } from '../../../../wire/csv.ts';
import { type CellReader, isReadBy, missingValues, readerBy, sameReader } from './cell-readers.ts';
import { columnWords, exampleMap, looksLikeEnd, looksLikeState, normalizedName } from './column-names.ts';
import { MappingFault } from './mapping-fault.ts';
import { type ProfileName, profiles } from './profiles.ts';

export interface Columns {
  readonly required: readonly string[];
  readonly optional: readonly string[];
}

export interface ColumnOptions {
  readonly map?: string | undefined;
  readonly ignore?: string | undefined;
  readonly from?: ProfileName | undefined;
  readonly product?: string | undefined;
}

/** A column of an import, and the column of the file that it is read from. */
interface Source {
  readonly ours: string;
  readonly theirs: string;
  /** The words, the unit or the order in which its cells are read. */
  readonly how: string | null;
  readonly isByProfile: boolean;
  /** Null: a cell is taken as it is. */
  readonly reader: CellReader | null;
  /** Columns of the file: if one of them is 1, this source is not read. */
  readonly unless: readonly string[];
}

/** Turns the rows of one file into rows of an import, as the options say. */
export class ColumnMapping {
  readonly #known: readonly string[];
  readonly #required: readonly string[];
  readonly #options: ColumnOptions;
  readonly #now: number;
  readonly #mapped: readonly (readonly [ours: string, theirs: string])[];
  #sources: readonly Source[] = [];
  /** The columns of the file that are not imported. */
  ignored: readonly string[] = [];
  /** Those of them that may be lost although they look like states. */
  dismissed: readonly string[] = [];
  /** How many rows of a profile have no license key and are left out. */
  withoutKey = 0;
  /** How many rows of a profile renew a key of another row and are left out. */
  renewals = 0;
  /** The names of the column of a profile that says whether a key is valid, if the file lacks that column. */
  #missingState: readonly string[] = [];
  /** The column of the file that is 1 in rows that renew a key. */
  #renewalColumn: string | undefined;
  /** The first renewal of each key. */
  readonly #renewed = new Map<string, CsvRow>();
  /** The keys of all other rows, if the file has renewals. */
  readonly #sold = new Set<string>();

  /** Throws a `MappingFault` for a wrong option. `now`: ends before it have passed. */
  constructor({ required, optional }: Columns, options: ColumnOptions, now: number) {
    this.#known = [...required, ...optional];
    this.#required = required;
    this.#options = options;
    this.#now = now;
    this.#mapped = readMap(options.map ?? '', this.#known);
  }

  /** Whether rows have a column of the import. */
  has(ours: string): boolean {
    return this.theirsOf(ours) !== null;
  }

  /** The column of the file that is read as a column of the import; null: none. */
  theirsOf(ours: string): string | null {
    return this.#sources.find((source) => source.ours === ours)?.theirs ?? null;
  }

  /** How a column of the file is read; null: it is not. */
  sourceOf(theirs: string): Pick<Source, 'ours' | 'how' | 'isByProfile'> | null {
    return this.#sources.find((source) => source.theirs === theirs) ?? null;
  }

  /** The columns that rows must have and that nothing is read as. */
  get missing(): readonly string[] {
    return this.#required.filter((name) => !this.has(name));
  }

  /**
   * The columns of the file that are read. Throws a `CsvUnreadable` for a file that lacks a column or has a column that
   * must not be lost, and a `MappingFault` for an option that does not fit the file.
   */
  toColumns(header: readonly string[]): readonly string[] {
    const columns = this.assign(header);
    this.#rejectMissing(header);
    this.rejectWithoutState();
    this.#rejectMiswritten();
    this.#rejectStates();
    return columns;
  }

  /** The columns of the file that are read, also if others are missing. */
  assign(header: readonly string[]): readonly string[] {
    const fault = separatorFault(header);
    if (fault !== null) throw fault;
    const named = this.#namedIn(header);
    const mapped = this.#mapped.map(([ours, theirs]) => this.#mappedSource(header, ours, theirs));
    const sources = [...mapped, ...this.#profileSources(header, mapped, named)];
    const dismissed = new Set([...named, ...this.#dismissedIn(header)]);
    const isTaken = (name: string): boolean =>
      dismissed.has(name) || sources.some(({ ours, theirs }) => name === ours || name === theirs);
    const native = header.filter((name) => this.#known.includes(name) && !isTaken(name));
    this.#sources = [...sources, ...native.map((name) => plainSource(name, name))];
    const read = new Set(this.#sources.flatMap(({ theirs, unless }) => [theirs, ...unless]));
    this.ignored = header.filter((name) => name !== '' && !read.has(name));
    this.dismissed = this.ignored.filter((name) => dismissed.has(name));
    return header.map((name) => (read.has(name) ? name : ''));
  }

  /** Refuses to import keys as valid because the file lacks the column of its profile that says so. */
  rejectWithoutState(): void {
    if (this.#missingState.length === 0) return;
    throw new CsvUnreadable(
      `The header has no column ${this.#missingState.join(' or ')}, which says whether a key is valid. ` +
        'Export that column too, or map the columns and leave out `from`.',
    );
  }

  /** The row with the columns of the import; null if it is left out. */
  convert(row: CsvRow): CsvRow | null {
    if (!('cells' in row)) return row;
    const keyColumn = this.#sources.find(({ ours }) => ours === 'license_key')?.theirs ?? '';
    if (this.#options.from !== undefined && isEmptyCell(row.cells[keyColumn] ?? '')) {
      this.withoutKey += 1;
      return null;
    }
    const converted = this.#convertCells(row);
    if (this.#renewalColumn === undefined) return converted;
    const licenseKey = (row.cells[keyColumn] ?? '').trim();
    if (row.cells[this.#renewalColumn] !== '1') {
      this.#sold.add(licenseKey);
      return converted;
    }
    this.renewals += 1;
    if (!this.#renewed.has(licenseKey)) this.#renewed.set(licenseKey, converted);
    return null;
  }

  /** The first renewals of keys that no other row of the file has. To be called after the last row. */
  takeRenewals(): readonly CsvRow[] {
    const rows = [...this.#renewed].filter(([key]) => !this.#sold.has(key)).map(([, row]) => row);
    this.renewals -= rows.length;
    return rows;
  }

  #convertCells(row: Extract<CsvRow, { cells: unknown }>): CsvRow {
    const cells: Record<string, string> = {};
    for (const { ours, theirs, reader, unless } of this.#sources) {
      if (unless.some((name) => row.cells[name] === '1')) continue;
      const cell = row.cells[theirs] ?? '';
      const value = reader === null ? cell : reader.read(cell.trim());
      if (value === null) return { line: row.line, detail: reader?.fault(cell.trim()) ?? '' };
      if (value !== '') cells[ours] = stricter(ours, cells[ours], value);
      // Unlike in an export of this program, a refund in the file of a store is also the end of the key.
      const isOurExport = theirs === ours && this.#options.from === undefined;
      if (ours === 'refunded_at' && !isOurExport && !isEmptyCell(value)) cells['refunded'] ??= 'true';
    }
    // An end that has passed says it by itself, and can be moved by a renewal.
    if (cells['enabled'] === 'expired') cells['enabled'] = String(this.#hasEnded(cells['expires_at']));
    return { line: row.line, cells };
  }

  #hasEnded(end = ''): boolean {
    const endsAt = endCell.safeParse(end.trim()).data;
    return endsAt !== undefined && endsAt < this.#now;
  }

  /** Reads `--map OURS=THEIRS` or `OURS=THEIRS:VALUES`. */
  #mappedSource(header: readonly string[], ours: string, text: string): Source {
    if (header.includes(text)) {
      const missing = missingValues(ours, isPlainState(ours, text));
      const end = ours === 'enabled' && looksLikeEnd(text) ? `use expires_at=${text} for dates, or ` : '';
      if (missing !== null && ours !== text)
        throw new MappingFault('map', `${ours}=${text}`, `${end}add ${missing}`);
      return plainSource(ours, text);
    }
    const colon = text.lastIndexOf(':');
    const [theirs, values] = [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)];
    if (header.includes(theirs) && isReadBy(ours, values)) return readSource(ours, theirs, values);
    throw new MappingFault('map', `${ours}=${text}`, `the header has ${header.join(', ')}`);
  }

  /** The sources of the profile for columns that are neither mapped nor dismissed. */
  #profileSources(
    header: readonly string[],
    mapped: readonly Source[],
    dismissed: readonly string[],
  ): readonly Source[] {
    const { from, product } = this.#options;
    if (from === undefined) return [];
    const inFile = (name: string): string | undefined => header.find((each) => normalizedName(each) === name);
    const { sources, renewal = '' } = profiles[from];
    this.#renewalColumn = inFile(renewal);
    const isMapped = (ours: string): boolean => mapped.some((source) => source.ours === ours);
    const state = sources.find(({ ours }) => ours === 'enabled');
    if (!isMapped('enabled') && state?.columns.some(inFile) === false) this.#missingState = state.columns;
    return sources.flatMap(({ ours, columns, values, unless = [] }): Source[] => {
      const theirs = columns.map(inFile).find((name) => name !== undefined);
      if (theirs === undefined || dismissed.includes(theirs)) return [];
      if (!this.#known.includes(ours) || isMapped(ours)) return [];
      const plain = { ...plainSource(ours, theirs), isByProfile: true };
      if (ours === 'product_key' && product !== undefined) return [{ ...plain, reader: sameReader(theirs) }];
      if (values === undefined) return [plain];
      const conditions = unless.map(inFile).filter((name) => name !== undefined);
      return [{ ...readSource(ours, theirs, values), isByProfile: true, unless: conditions }];
    });
  }

  /** The columns that the profile dismisses. */
  #dismissedIn(header: readonly string[]): readonly string[] {
    const { from } = this.#options;
    if (from === undefined) return [];
    return header.filter((name) => profiles[from].dismissed.includes(normalizedName(name)));
  }

  /** The columns that the option `--ignore` dismisses. */
  #namedIn(header: readonly string[]): readonly string[] {
    const { ignore = '' } = this.#options;
    const named = header.includes(ignore) ? [ignore] : ignore.split(',').filter((name) => name !== '');
    const unknown = named.find((name) => !header.includes(name));
    if (unknown !== undefined)
      throw new MappingFault('ignore', unknown, `the header has ${header.join(', ')}`);
    return named;
  }

  #rejectMissing(header: readonly string[]): void {
    const { missing } = this;
    if (missing.length === 0) return;
    const advice = `It has ${header.join(', ')}. Map the columns: --map ${missing[0] ?? ''}=THEIRS.`;
    throw new CsvUnreadable(`The header does not name ${missing.join(', ')}. ${advice}`);
  }

  /** Refuses to lose columns that say whether a key is valid. */
  #rejectStates(): void {
    const states = this.ignored.filter((name) => looksLikeState(name) && !this.dismissed.includes(name));
    if (states.length === 0) return;
    const example = exampleMap(
      states,
      this.#known.filter((name) => name === 'enabled' || !this.has(name)),
    );
    const advice = example === '' ? 'Dismiss them' : `Map them, such as --map '${example}', or dismiss them`;
    throw new CsvUnreadable(
      `The header has columns that look like states, and are not imported: ${states.join(', ')}. ` +
        `${advice}: --ignore '${states.join(',')}'.`,
    );
  }

  #rejectMiswritten(): void {
    const lacking = this.#known.filter((name) => !this.has(name));
    const miswritten = findMiswritten(this.ignored, lacking);
    if (miswritten.length === 0) return;
    const theirs = miswritten.map((each) => each.theirs).join(', ');
    const map = miswritten.map((each) => `${each.ours}=${each.theirs}`).join(',');
    throw new CsvUnreadable(
      `The header has ${theirs}, but column names are lower-case; use --map ${map}, or rename them.`,
    );
  }
}

function plainSource(ours: string, theirs: string): Source {
  return { ours, theirs, how: null, isByProfile: false, reader: null, unless: [] };
}

function readSource(ours: string, theirs: string, values: string): Source {
  return { ...plainSource(ours, theirs), how: values, reader: readerBy({ ours, theirs, values }) };
}

/** If several columns give a state, one that says no decides. */
function stricter(ours: string, one: string | undefined, other: string): string {
  const order = ours === 'enabled' ? ['false', 'expired'] : ['true'];
  return order.find((strict) => one === strict || other === strict) ?? other;
}

const plainStates: Readonly<Record<string, readonly string[]>> = {
  enabled: ['enabled', 'active', 'valid', 'aktiv', 'aktiviert', 'gültig'],
  refunded: ['refunded', 'refund', 'erstattet'],
};

/** Whether true in a column of this name means true here: not in `status`, `disabled` or `not_active`. */
export function isPlainState(ours: string, theirs: string): boolean {
  const words = columnWords(theirs);
  if (!looksLikeState(theirs)) return true;
  if (looksLikeEnd(theirs)) return false;
  return plainStates[ours]?.some((word) => words.includes(word)) === true && !words.some(isNegation);
}

function isNegation(word: string): boolean {
  return ['not', 'no', 'non', 'un', 'nicht', 'kein'].includes(word);
}

function readMap(map: string, known: readonly string[]): (readonly [ours: string, theirs: string])[] {
  // The name of a column in the file may contain a comma.
  const mappings = map.split(/,(?=\w+=)/).filter((each) => each !== '');
  const named = new Set<string>();
  return mappings.map((each) => {
    const [ours = '', ...rest] = each.split('=');
    if (rest.length === 0) throw new MappingFault('map', each, 'use COLUMN=THEIRS');
    if (!known.includes(ours)) throw new MappingFault('map', each, `the columns are ${known.join(', ')}`);
    const theirs = rest.join('=');
    const isStateByWords = isReadBy(ours, theirs);
    for (const name of isStateByWords ? [theirs] : [ours, `${theirs} of the file`]) {
      if (named.has(name)) throw new MappingFault('map', each, `${name} is named twice`);
      named.add(name);
    }
    return [ours, theirs] as const;
  });
}
