import { parseDatetime } from '../../../../domain/time.ts';
import { endCell, isStateWord, instantCell, isEmptyCell, isNoEnd } from '../import.ts';
import { amounts, dateOrders, dates, isDated, wordOf } from './cell-readers.ts';
import { type Columns, isPlainState } from './columns.ts';
import { looksLikeEnd, normalizedName } from './column-names.ts';
import { profiles, type ProfileName } from './profiles.ts';

/**
 * A word in a column of the file, as `--map` writes it, and what it says if the column is read as `enabled` or as
 * `refunded`; null: a person must say it.
 */
export type Word = { word: string; enabled: boolean | null; refunded: boolean | null };

/** How a column of the file is probably read: as a column of the import, and in the notation of `--map`. */
export type Guess = { as: string; how: string | null };

/** More names of columns, in English and German, than the profiles have. */
const otherNames: Readonly<Record<string, string>> = {
  license_key:
    'key licence_key license licence serial serial_number lizenzschlüssel lizenzschluessel lizenz schlüssel',
  buyer_email:
    'email e_mail mail kunden_email kunden_e_mail e_mail_adresse käufer_email customer_email_address',
  product_key: 'product product_code sku produkt produkt_id artikel artikelnummer',
  purchase_id: 'order_id order order_number bestellung bestellnummer kauf_id',
  uses: 'activations activation_count nutzungen aktivierungen',
  date: 'created created_on order_date date_created datum kaufdatum bestelldatum erstellt erstellt_am gekauft_am',
  enabled: 'active status state valid aktiv zustand gültig',
  refunded: 'refund erstattet rückerstattet',
  refunded_at: 'refund_date refunded_on erstattet_am erstattungsdatum',
  code: 'coupon coupon_code discount_code gutschein gutscheincode',
  coupon_type: 'type typ',
  percent_off: 'percent percentage prozent rabatt_prozent',
  amount_off: 'amount discount betrag rabatt_betrag',
  start_date: 'starts starts_at gültig_ab beginn',
  usage_limit: 'limit max_uses maximum_uses usage_limit_per_coupon',
  notes: 'note description notiz bemerkung beschreibung',
};

/** What a column may be in an import. */
function candidates({ name, cells }: Column): readonly string[] {
  const normal = normalizedName(name);
  const ofProfiles = Object.values(profiles).flatMap(({ sources }) =>
    sources.filter(({ columns }) => columns.includes(normal)).map(({ ours }) => ours),
  );
  const ofOthers = Object.entries(otherNames).filter(([, names]) => names.split(' ').includes(normal));
  const filled = cells.filter((cell) => !isEmptyCell(cell));
  const hasEnds = filled.length === 0 || filled.some((cell) => isDated(cell) || isNoEnd(cell));
  const ends = hasEnds && looksLikeEnd(name) ? ['expires_at', 'end_date'] : [];
  return [normal, ...ofProfiles, ...ofOthers.map(([ours]) => ours), ...ends];
}

type Column = { name: string; cells: readonly string[] };

/** What the columns of a file are probably read as, in their order; null: nothing. */
export function guessColumns(file: readonly Column[], { required, optional }: Columns): (Guess | null)[] {
  const known = new Set([...required, ...optional]);
  const exact = new Set(file.map(({ name }) => normalizedName(name)));
  const taken = new Set<string>();
  return file.map(({ name, cells }) => {
    const normal = normalizedName(name);
    const isFree = (ours: string): boolean =>
      known.has(ours) && !taken.has(ours) && (ours === normal || !exact.has(ours));
    const as = candidates({ name, cells }).find(isFree);
    if (as === undefined) return null;
    // Several columns may say that a key is not valid.
    if (as !== 'enabled') taken.add(as);
    if (dates.has(as)) return { as, how: guessOrder(as, cells) };
    return { as, how: amounts.has(as) && as === name ? 'cents' : null };
  });
}

/** The only profile whose columns a file has; null: none, or several. */
export function guessProfile(header: readonly string[]): ProfileName | null {
  const names = new Set(header.map(normalizedName));
  const telling = ['license_key', 'buyer_email', 'product_key', 'date', 'enabled'];
  const fitting = Object.entries(profiles).filter(([, { sources }]) =>
    telling.every((ours) => {
      const source = sources.find((each) => each.ours === ours);
      return source?.columns.some((name) => names.has(name)) === true;
    }),
  );
  return fitting.length === 1 ? (fitting[0]?.[0] as ProfileName) : null;
}

/** Whether a cell is a date that says its day and month in an order that a person must confirm. */
export function needsOrder(cells: readonly string[]): boolean {
  return cells.some((cell) => Object.values(dateOrders).some((order) => order.test(cell.trim())));
}

/** The order of dates; null: they are read as they are, or a person must say it. */
function guessOrder(ours: string, cells: readonly string[]): string | null {
  const filled = cells.filter((cell) => !isEmptyCell(cell) && !isNoEnd(cell)).map((cell) => cell.trim());
  const type = ours === 'end_date' ? endCell : instantCell;
  if (filled.length === 0 || filled.some((cell) => type.safeParse(cell).success)) return null;
  const fitting = Object.entries(dateOrders).filter(([, order]) =>
    filled.every((cell) => {
      const { year = '', month = '', day = '' } = order.exec(cell)?.groups ?? {};
      return parseDatetime(`${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}T00:00:00Z`) !== null;
    }),
  );
  // 01/02/2025 is a day in both orders.
  return fitting.length === 1 ? (fitting[0]?.[0] ?? null) : null;
}

/** Words for yes and no that stand in pairs: they need the name of the column. */
const pairs = ['true|false', 'yes|no', '1|0', 'wahr|falsch', 'ja|nein'].map((pair) => pair.split('|'));

/** Words that say by themselves whether a key is valid. */
const meanings: ReadonlyMap<string, boolean> = new Map([
  ...'active enabled valid aktiv aktiviert gültig freigeschaltet paid sold delivered verkauft bezahlt'
    .split(' ')
    .map((word): [string, boolean] => [word, true]),
  ...`inactive disabled invalid revoked expired suspended blocked banned refunded cancelled canceled terminated
    inaktiv deaktiviert ungültig gesperrt widerrufen abgelaufen erstattet storniert gekündigt`
    .split(/\s+/)
    .map((word): [string, boolean] => [word, false]),
]);

const refunds: ReadonlyMap<string, boolean> = new Map([
  ['refunded', true],
  ['erstattet', true],
]);

/** More different words than this are no states. */
const mostWords = 12;
const longestWord = 64;

/** Whether `--map` can have a word of a file. */
function isMappable(word: string): boolean {
  return word.length <= longestWord && !/[,|:=]|^\*$/.test(word);
}

/** The words of a column for `--map`: `-` is an empty cell, `*` any other, such as a date. */
export function wordsOf({ name, cells }: Column): readonly Word[] {
  const words = new Set(cells.map(wordOf));
  // The import reads these as they are.
  if (['enabled', 'refunded'].includes(name) && [...words].every((word) => word === '' || isStateWord(word)))
    return [];
  const isEmpty = words.delete('');
  const found = [...words].some(isCode) ? [] : pairs.filter((pair) => pair.some((word) => words.has(word)));
  // The file may have the other word of a pair further down.
  for (const word of found.flat()) words.add(word);
  const shown = [...words].filter((word) => isMappable(word) && !isDated(word)).slice(0, mostWords);
  const others = [...(isEmpty ? ['-'] : []), ...(shown.length < words.size ? ['*'] : [])];
  return [...shown, ...others].map((word) => meant(name, word, found));
}

/** Whether a word is a number that means neither yes nor no: 0 and 1 beside it are codes, too. */
function isCode(word: string): boolean {
  return /^\d+$/.test(word) && Number(word) > 1;
}

/** `found`: the pairs whose words say yes and no. */
function meant(name: string, word: string, found: readonly (readonly string[])[]): Word {
  const pair = found.find((each) => each.includes(word));
  if (pair === undefined)
    return { word, enabled: meanings.get(word) ?? null, refunded: refunds.get(word) ?? null };
  const yes = word === pair[0];
  return {
    word,
    enabled: isPlainState('enabled', name) ? yes : null,
    refunded: isPlainState('refunded', name) ? yes : null,
  };
}
