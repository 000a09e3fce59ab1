import { styleText } from 'node:util';
import { errorCodeOf, exitCode } from './exit-code.ts';
import type { Shown } from './format.ts';
import { renderLayout, type Line, type Span, toVisible, toVisibleLines } from './screen.ts';

/** Where a command writes: results to standard output, errors and warnings to standard error. */
export interface Output {
  readonly print: (text: string) => void;
  /** Prints text, fields and tables, laid out for the terminal. `now` (epoch ms) is the daemon's time. */
  readonly show: (shown: Shown, now?: number) => Promise<void>;
  /** Shows a result, or prints the JSON value with `--json`. Returns the exit code `done`. */
  readonly result: (value: unknown, shown: Shown, now?: number) => Promise<number>;
  readonly printJson: (value: unknown) => void;
  /** Prints an error or a warning. `refusal`: the daemon's error, for `--json`. */
  readonly printError: (lines: readonly string[], refusal?: Refusal) => void;
}

/** The daemon's error: a problem (src/http/README.md, Problems) or the error of another dialect. */
export interface Refusal {
  readonly code: string;
  readonly detail: string;
  readonly body: unknown;
}

export type Write = (text: string) => void;

/** Standard output: the width of the terminal, null for a pipe or a file, and whether it shows colours. */
export interface Screen {
  readonly columns: number | null;
  readonly hasColour: boolean;
}

/** Creates an output that writes to two streams. Every text ends with a newline. */
export function createOutput(
  writeResult: Write,
  writeError: Write,
  screen: () => Screen = () => ({ columns: null, hasColour: false }),
): Output {
  const write = async (shown: Shown, now: number): Promise<string> => {
    const { columns, hasColour } = screen();
    const lines = await renderLayout(shown, { columns, now });
    return lines.map((line) => `${formatLine(line, hasColour)}\n`).join('');
  };
  const show: Output['show'] = async (shown, now = Date.now()) => writeResult(await write(shown, now));
  return {
    print: (text) => writeResult(`${toVisibleLines(text)}\n`),
    show,
    result: async (_, shown, now) => {
      await show(shown, now);
      return exitCode.done;
    },
    printJson: (value) => writeResult(`${toSafeJson(value)}\n`),
    printError: (lines) => writeError(`${toVisibleLines(lines.join('\n'))}\n`),
  };
}

export const processOutput: Output = createOutput(
  (text) => void process.stdout.write(text),
  (text) => void process.stderr.write(text),
  () => ({
    columns: process.stdout.isTTY ? process.stdout.columns : null,
    // styleText respects NO_COLOR, FORCE_COLOR and TERM, and checks that the stream is a terminal.
    hasColour: styleText('bold', '.', { stream: process.stdout }) !== '.',
  }),
);

const styles = {
  heading: 'bold',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
  faint: 'dim',
} as const;

/** Writes a line without trailing spaces. Its only control characters are those of the colours. */
function formatLine(line: Line, hasColour: boolean): string {
  const last = line.findLastIndex(({ text }) => text.trimEnd() !== '');
  return line
    .slice(0, last + 1)
    .map((span, index) =>
      formatSpan(index === last ? { ...span, text: span.text.trimEnd() } : span, hasColour),
    )
    .join('');
}

function formatSpan({ text, tone }: Span, hasColour: boolean): string {
  const visible = toVisible(text);
  return hasColour && tone !== undefined
    ? styleText(styles[tone], visible, { validateStream: false })
    : visible;
}

/** Writes JSON, and escapes the control characters that `JSON.stringify` does not escape. */
export function toSafeJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(
    /[\u007F-\u009F\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Creates an output for `--json`: `finish` writes all errors or warnings as one JSON value. */
export function createJsonOutput(output: Output): Output & { readonly finish: (code: number) => void } {
  const messages: string[] = [];
  let refused: Refusal | undefined;
  return {
    ...output,
    result: async (value) => {
      output.printJson(value);
      return exitCode.done;
    },
    printError(lines, refusal) {
      refused = refusal ?? refused;
      messages.push(lines.map((line) => line.replace(/^latchkey: /, '')).join('\n'));
    },
    finish(code) {
      if (messages.length === 0) return;
      const value =
        code === exitCode.done ? { warnings: messages } : { error: errorOf(code, messages, refused) };
      output.printError([toSafeJson(value)]);
    },
  };
}

function errorOf(code: number, messages: readonly string[], refused: Refusal | undefined): object {
  return {
    code: refused?.code ?? errorCodeOf(code),
    detail: refused?.detail ?? messages.join('\n'),
    exit_code: code,
    ...(refused !== undefined && { answer: refused.body }),
  };
}
