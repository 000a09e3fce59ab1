import type { Encoding } from './csv-parts.ts';

export type Noun = 'license' | 'purchase' | 'coupon';

/** How the daemon reads the beginning of a file. */
export type Preview = {
  readonly separator: string;
  readonly encoding: Encoding;
  /** A word that shows whether the encoding is right; '': none. */
  readonly reading: string;
  readonly from: string | null;
  readonly columns: readonly FileColumn[];
  readonly missing: readonly string[];
  readonly rows: readonly {
    readonly line: number;
    readonly cells: Readonly<Record<string, string>> | null;
    readonly detail: string | null;
  }[];
};

export type FileColumn = {
  readonly name: string;
  readonly values: readonly string[];
  readonly read_as: string | null;
  readonly how: string | null;
  readonly by_store: boolean;
  readonly state: boolean;
  readonly needs_order: boolean;
  readonly words: readonly {
    readonly word: string;
    readonly enabled: boolean | null;
    readonly refunded: boolean | null;
  }[];
};

/** What a column of the file is read as: '' is not imported, null is not decided. */
export type Choice = {
  readonly as: string | null;
  /** The unit or the order of its cells; null: as they are. */
  readonly how: string | null;
  /** What the words of a state say; null: not decided. */
  readonly words: Readonly<Record<string, boolean | null>>;
};

/** The names that people read, by the columns of an import. */
const saleLabels = {
  license_key: 'License key',
  buyer_email: 'E-mail address of the customer',
  product_key: 'Product',
  uses: 'Uses',
  enabled: 'Enabled or disabled',
  date: 'Date of the sale',
  refunded: 'Refunded or not',
  refunded_at: 'Date of the refund',
  replaced_by: 'The key that replaces it',
  expires_at: 'Valid until',
  uses_limit: 'Limit of the uses',
  entitlements: 'Entitlements',
  metadata: 'Notes as JSON',
  seats: 'Seats',
  lease_hold_s: 'Seconds for which a seat stays taken',
  lease_term_s: 'Seconds for which a lease is valid',
  lease_refresh_s: 'Seconds after which a lease is renewed',
};

export const labels: Readonly<Record<Noun, Readonly<Record<string, string>>>> = {
  license: saleLabels,
  purchase: { purchase_id: 'Number of the purchase', ...saleLabels },
  coupon: {
    code: 'Code',
    coupon_type: 'Type',
    id: 'Number of the coupon',
    percent_off: 'Percent off',
    amount_off: 'Amount off',
    start_date: 'First day',
    end_date: 'Last day',
    product_key: 'Product',
    collection_id: 'Collection',
    minimum_purchase_amount: 'Minimum of the cart',
    usage_limit: 'Limit',
    notes: 'Notes',
  },
};

export type State = 'enabled' | 'refunded';

export function isState(as: string | null): as is State {
  return as === 'enabled' || as === 'refunded';
}

/** How the cells of a column can be read, beside as they are. */
export function waysOf(as: string | null): readonly (readonly [how: string, text: string])[] {
  if (as === 'amount_off' || as === 'minimum_purchase_amount')
    return [
      ['money', 'money, such as 5.00'],
      ['cents', 'cents, such as 500'],
    ];
  if (as === null || !['date', 'refunded_at', 'expires_at', 'start_date', 'end_date'].includes(as)) return [];
  return [
    ['D.M.Y', 'day.month.year'],
    ['D/M/Y', 'day/month/year'],
    ['M/D/Y', 'month/day/year'],
  ];
}

/** What the daemon takes a column for. */
export function guessed({ read_as: as, how, state, words, by_store: isByStore }: FileColumn): Choice {
  return {
    as: as ?? (state && !isByStore ? null : ''),
    how: isState(as) ? null : how,
    words: meaningsOf(words, as),
  };
}

/** What the words of a column say if it is read as a state. */
export function meaningsOf(words: FileColumn['words'], as: string | null): Choice['words'] {
  if (!isState(as)) return {};
  return Object.fromEntries(words.map((each) => [each.word, each[as]]));
}

/** Why a column cannot be imported yet; null: it can. */
export function openQuestion(column: FileColumn, { as, how, words }: Choice): string | null {
  if (as === null) return 'It looks like a state of keys. Say what it is, or that it is not imported.';
  if (isState(as)) {
    const undecided = Object.keys(words).find((word) => words[word] === null);
    if (undecided !== undefined) return `Say what ${wordText(undecided)} means.`;
    return column.words.length === 0 && as !== column.name ? 'Its words are not known.' : null;
  }
  const isAmount = waysOf(as).some(([way]) => way === 'money');
  if (how === null && isAmount) return 'Say whether it is money or cents.';
  return how === null && waysOf(as).length > 0 && column.needs_order
    ? 'Say the order of day and month.'
    : null;
}

/** A word of a column as people read it. */
export function wordText(word: string): string {
  const texts: Readonly<Record<string, string>> = {
    '-': 'an empty cell',
    '*': 'anything else',
  };
  return texts[word] ?? `“${word}”`;
}

export type Decided = readonly (readonly [column: FileColumn, choice: Choice])[];

/** The parameters `map` and `ignore` of an import, which the command has as options. */
export function mappingOf(columns: Decided, noun: Noun): { map: string; ignore: string } {
  const map = columns.flatMap(([column, choice]) => {
    const { as, how } = choice;
    if (column.by_store || as === null || as === '' || openQuestion(column, choice) !== null) return [];
    const way = isState(as) ? wordsText(choice.words) : how;
    if (way === null) return as === column.name ? [] : [`${as}=${column.name}`];
    return [`${as}=${column.name}:${way}`];
  });
  const ignored = columns.filter(
    ([{ name, state, by_store: isByStore }, { as }]) =>
      !isByStore && as === '' && (state || Object.hasOwn(labels[noun], name)),
  );
  return { map: map.join(','), ignore: ignored.map(([{ name }]) => name).join(',') };
}

/** The words of a state as `--map` has them; null: there are none. */
function wordsText(words: Choice['words']): string | null {
  const side = (yes: boolean): string =>
    Object.keys(words)
      .filter((word) => words[word] === yes)
      .join(',');
  return Object.keys(words).length === 0 ? null : `${side(true)}|${side(false)}`;
}
