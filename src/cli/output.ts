/** Where a command writes: results to standard output, errors to standard error. */
export interface Output {
  readonly print: (text: string) => void;
  /** Machine output: one JSON value. */
  readonly printJson: (value: unknown) => void;
  readonly complain: (lines: readonly string[]) => void;
}

/** Writes text to a stream. */
export type Write = (text: string) => void;

/** Makes an output of two streams; every text ends with a newline. */
export function createOutput(writeResult: Write, writeError: Write): Output {
  return {
    print: (text) => writeResult(`${toVisible(text)}\n`),
    printJson: (value) => writeResult(`${toSafeJson(value)}\n`),
    complain: (lines) => writeError(`${toVisible(lines.join('\n'))}\n`),
  };
}

/** The process's own streams. */
export const processOutput: Output = createOutput(
  (text) => void process.stdout.write(text),
  (text) => void process.stderr.write(text),
);

/** Replaces control characters: a text that a buyer wrote must not control the terminal. */
function toVisible(text: string): string {
  return text.replaceAll(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, '\u{FFFD}');
}

/** Also escapes U+007F to U+009F, which `JSON.stringify` leaves as they are. */
function toSafeJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(
    /[\u007F-\u009F]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
