export type Row = Readonly<Record<string, unknown>>;

/** RFC 4180. A cell that begins like a formula gets an apostrophe, so that no spreadsheet runs it. */
export function csvOf(rows: readonly Row[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value: unknown): string => {
    const text = typeof value === 'string' ? value : JSON.stringify(value ?? '').replace(/^""$/, '');
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))]
    .map((values) => `${values.map(cell).join(',')}\r\n`)
    .join('');
}
