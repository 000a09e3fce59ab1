/** A mapping of columns that does not fit its file, or cannot be read. */
export class MappingFault extends Error {
  /** The parameter of a request, and the option of a command, that is wrong. */
  readonly parameter: 'map' | 'ignore';
  /** The part of it that is wrong. */
  readonly given: string;

  constructor(parameter: 'map' | 'ignore', given: string, why: string) {
    super(why);
    this.parameter = parameter;
    this.given = given;
  }
}
