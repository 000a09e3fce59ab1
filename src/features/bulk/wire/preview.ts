import { z } from 'zod';
import { boolean, identifier, oneOf, parameters } from '../../../wire/parameters.ts';
import { separatorNames } from '../../../wire/csv.ts';
import type { Preview } from './mapping/preview.ts';
import { mappingShape, profileNames } from './mapping-shape.ts';

/**
 * `guess`: say what columns are probably read as. Otherwise they are read as `map` and `ignore` say. Without `from` the
 * store is guessed; `other` is none of those that are known.
 */
export const previewQuery = parameters({
  ...mappingShape,
  from: oneOf(['other', ...profileNames]).optional(),
  product_key: identifier.optional(),
  guess: boolean.prefault(true),
});

/** The beginning of a file: its bytes in CSV, or its text. */
const file = z.unknown().transform((input, { issues }): Uint8Array => {
  if (typeof input === 'string') return new TextEncoder().encode(input);
  if (input instanceof Uint8Array) return input;
  issues.push({ code: 'custom', input, message: 'not_text: must be text' });
  return z.NEVER;
});

export const previewBody = {
  ...parameters({ file }),
  schema: z.object({ file: z.string().min(1) }).meta({ id: 'ImportPreviewFile' }),
};

const word = z
  .object({ word: z.string(), enabled: z.boolean().nullable(), refunded: z.boolean().nullable() })
  .meta({ id: 'ImportWord' });

export const importPreview = z
  .object({
    separator: z.string(),
    encoding: z.enum(['utf-8', 'windows-1252']),
    reading: z.string().describe('A word of the file that shows whether the encoding is right, or empty.'),
    from: z.string().nullable().describe('The store whose columns the file has.'),
    columns: z.array(
      z
        .object({
          name: z.string(),
          values: z.array(z.string()).describe('The beginnings of the cells of the first three rows.'),
          read_as: z.string().nullable(),
          how: z.string().nullable().describe('How its cells are read, as in `map`.'),
          by_store: z.boolean().describe('`from` says it.'),
          state: z.boolean().describe('It looks like a state, and must be mapped or ignored.'),
          needs_order: z.boolean().describe('It has dates whose order must be confirmed.'),
          words: z.array(word).describe('Its words as in `map`, and what they say; null: unknown.'),
        })
        .meta({ id: 'ImportColumn' }),
    ),
    missing: z.array(z.string()).describe('The columns that nothing is read as, and that rows must have.'),
    rows: z
      .array(
        z
          .object({
            line: z.int(),
            cells: z.record(z.string(), z.string()).nullable(),
            detail: z.string().nullable(),
          })
          .meta({ id: 'ImportedRow' }),
      )
      .describe('The first rows as they would be imported, or what is wrong with them.'),
  })
  .meta({ id: 'ImportPreview' });

export function presentPreview(preview: Preview): z.infer<typeof importPreview> {
  const { format, reading, from, columns, missing, rows } = preview;
  const [separator = 'comma'] =
    Object.entries(separatorNames).find(([, character]) => character === format.separator) ?? [];
  return {
    separator,
    encoding: format.encoding,
    reading,
    from,
    columns: columns.map(({ readAs, isByProfile, isState, needsOrder, values, words, ...column }) => ({
      ...column,
      values: [...values],
      words: [...words],
      read_as: readAs,
      by_store: isByProfile,
      state: isState,
      needs_order: needsOrder,
    })),
    missing: [...missing],
    rows: rows.map((row) =>
      'cells' in row
        ? { line: row.line, cells: { ...row.cells }, detail: null }
        : { line: row.line, cells: null, detail: row.detail },
    ),
  };
}

export type ImportPreview = z.infer<typeof importPreview>;
