import { separatorNames } from '../../../wire/csv.ts';
import { oneOf, parameters, text } from '../../../wire/parameters.ts';
import { type ProfileName, profiles } from './mapping/profiles.ts';

/** A target and its headers have 8 KiB, in which one letter may take 12 bytes. */
const mostBytes = 2_500;

/** Names of columns in a query. */
const columnsText = text(mostBytes)
  .refine((input) => encodeURIComponent(input).length <= mostBytes, {
    error: `too_long: must have at most ${mostBytes} bytes in a query; import the file with the command`,
  })
  .meta({ maxLength: undefined, description: `At most ${mostBytes} bytes in the query.` });

/** How CSV is written, and what its columns are called, as the options of the command. */
export const mappingShape = {
  separator: oneOf(Object.keys(separatorNames)).optional(),
  encoding: oneOf(['utf-8', 'windows-1252']).optional(),
  map: columnsText.optional(),
  /** Columns that are dismissed, with commas between their names. */
  ignore: columnsText.optional(),
};

export const profileNames = Object.keys(profiles) as ProfileName[];

/** The store that has written the file. */
export const profileShape = { from: oneOf(profileNames).optional() };

/** Those of them that the body of an import depends on. */
export const mappingQuery = parameters({
  ...mappingShape,
  ...profileShape,
  product_key: text(100).optional(),
});
