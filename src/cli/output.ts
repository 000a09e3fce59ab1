/** Where a command writes: its result to the one stream, what went wrong to the other. */
export interface Output {
  readonly print: (text: string) => void;
  /** Machine output: one JSON value. */
  readonly printJson: (value: unknown) => void;
  readonly complain: (lines: readonly string[]) => void;
}

/** What a stream is to us. */
export type Write = (text: string) => void;

/** Makes an output of two streams; each text becomes whole lines. */
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

/** A buyer's text must not reach the terminal as a command to it. */
function toVisible(text: string): string {
  return text.replaceAll(/(?!\n)[\p{Cc}\p{Bidi_Control}]/gu, '\u{FFFD}');
}

/** JSON escapes only the older control characters itself. */
function toSafeJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(
    /[\u007F-\u009F]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
