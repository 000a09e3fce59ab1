import { fieldText } from './action.tsx';
import { quoted } from './command.tsx';

/** What a field of a form means. The name of the field is that of the parameter. */
type Meaning = {
  /** The option of the command that does the same. */
  readonly option: string;
  /** The word of the option, for the text of the field. Default: the text, or `none`. */
  readonly word?: (text: string) => string;
  /** The value of the parameter, for the text of the field. Default: the word of the option. */
  readonly value?: (text: string) => unknown;
};

type Meanings = Readonly<Record<string, Meaning>>;

/** The texts of fields before a person changes them; a missing one is empty. */
export type Texts<Names extends PropertyKey = string> = Readonly<Partial<Record<Names, string>>>;

const textOrNone = (text: string): string => text || 'none';

/** The fields that a person has changed, with their texts. */
function changed(form: FormData, fields: Meanings, before: Texts) {
  return Object.entries(fields)
    .map(([name, meaning]) => ({ name, text: fieldText(form, name), ...meaning }))
    .filter(({ name, text }) => form.has(name) && text !== (before[name] ?? ''));
}

/** What a person has changed, as parameters. */
export function changedParameters(form: FormData, fields: Meanings, before: Texts = {}): object {
  return Object.fromEntries(
    changed(form, fields, before).map(({ name, text, word = textOrNone, value = word }) => [
      name,
      value(text),
    ]),
  );
}

/** What a person has changed, as options of a command. */
export function changedOptions(form: FormData, fields: Meanings, before: Texts = {}): string[] {
  return changed(form, fields, before).map(
    ({ option, text, word = textOrNone }) => `${option} ${quoted(word(text))}`,
  );
}
