export type Encoding = 'utf-8' | 'windows-1252';

/** A part of a CSV file, with the header of the file. `line`: the line of its first record in the file. */
export type CsvPart = { readonly text: string; readonly line: number; readonly records: number };

/**
 * Divides a CSV file into parts that one request can have. A line break within quotation marks does not end a record.
 * Throws if the file has no record.
 */
export function csvParts(file: string, limits: { records: number; characters: number }): CsvPart[] {
  const text = file.replace(/^\uFEFF/, '');
  let start = 0;
  let from = recordEnd(text, 0);
  // Spreadsheets write rows of empty cells, also above the header.
  while (from < text.length && isEmptyRow(text.slice(start, from))) {
    start = from;
    from = recordEnd(text, start);
  }
  const header = text.slice(start, from);
  const parts: CsvPart[] = [];
  let line = 1 + lineBreaks(text.slice(0, from));
  while (from < text.length) {
    let end = from;
    let records = 0;
    do {
      end = recordEnd(text, end);
      records += 1;
    } while (end < text.length && records < limits.records && end - from < limits.characters);
    const body = text.slice(from, end);
    if (body.trim() !== '') parts.push({ text: `${withBreak(header)}${body}`, line, records });
    line += lineBreaks(body);
    from = end;
  }
  if (parts.length === 0) throw new Error('The file has no rows: the first line names the columns.');
  return parts;
}

/** Where the record ends that begins at `from`, after its line break. */
function recordEnd(text: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (character === '\n' || (character === '\r' && text[at + 1] !== '\n')))
      return at + 1;
  }
  return text.length;
}

function lineBreaks(text: string): number {
  return text.split(/\r\n|\n|\r/).length - 1;
}

function isEmptyRow(row: string): boolean {
  return /^[\s,;|"]*$/.test(row);
}

function withBreak(header: string): string {
  return /[\r\n]$/.test(header) ? header : `${header}\n`;
}

/** The text of a file. Throws if the file has another encoding: letters would be lost. */
export function textOf(bytes: ArrayBuffer, encoding: Encoding = 'utf-8'): string {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // The reason is the same for every file.
  }
  throw new Error('The file is not UTF-8: save it as UTF-8.');
}

/** The beginning of a file, which ends with a line. */
export async function beginningOf(file: Blob, bytes: number): Promise<Blob> {
  if (file.size <= bytes) return file;
  const start = new Uint8Array(await file.slice(0, bytes).arrayBuffer());
  const end = Math.max(start.lastIndexOf(0x0a), start.lastIndexOf(0x0d)) + 1;
  return file.slice(0, end === 0 ? bytes : end);
}
