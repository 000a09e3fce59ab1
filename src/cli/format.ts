/** A value as it may come in an answer; `null` and `undefined` have nothing to show. */
export type Cell = string | number | boolean | null | undefined;

/** Writes names and values in two columns, leaving out what has no value. */
export function formatFields(fields: Readonly<Record<string, Cell>>): string {
  const rows = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined);
  return align(rows);
}

/** Writes records as a table under their column names. */
export function formatTable(rows: readonly Readonly<Record<string, Cell>>[]): string {
  const [first] = rows;
  if (first === undefined) return 'none';
  return align([
    Object.keys(first).map((name) => name.toUpperCase()),
    ...rows.map((row) => Object.values(row)),
  ]);
}

/** Writes seconds in the two largest units that they fill. */
export function formatAge(seconds: number): string {
  const units = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'm'],
    [1, 's'],
  ] as const;
  const start = units.findIndex(([size]) => seconds >= size);
  if (start === -1) return '0s';
  const [[large, name], small] = [units[start] ?? units[3], units[start + 1]];
  const rest = small === undefined ? 0 : Math.floor((seconds % large) / small[0]);
  return `${Math.floor(seconds / large)}${name}${rest > 0 ? ` ${rest}${small?.[1]}` : ''}`;
}

/** Writes cents with a decimal point; the currency is the seller's. */
export function formatCents(cents: number): string {
  return (cents / 100).toFixed(2);
}

function align(rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map((cell) => String(cell ?? '-')));
  const widths = (texts[0] ?? []).map((_, column) =>
    Math.max(...texts.map((row) => row[column]?.length ?? 0)),
  );
  return texts
    .map((row) =>
      row
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
