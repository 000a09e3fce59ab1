import { styleText } from 'node:util';
import type { Shown } from './format.ts';
import { layOut, type Line } from './screen/layout.ts';
import type { Span } from './screen/span.ts';
import { toVisible, toVisibleLines } from './screen/visible.ts';

/** Where a command writes: results to standard output, errors and warnings to standard error. */
export interface Output {
  /** Lines as they are. */
  readonly print: (text: string) => void;
  /** What a person reads, laid out for the terminal; `now` (epoch ms) is the clock of whoever wrote its instants. */
  readonly show: (shown: Shown, now?: number) => Promise<void>;
  /** Machine output: one JSON value. */
  readonly printJson: (value: unknown) => void;
  /** The same in one line, of which there are many. */
  readonly printJsonLine: (value: unknown) => void;
  /** Opens a place on the terminal that is written over again and again; null: there is no terminal. */
  readonly openLive: () => Promise<Live | null>;
  readonly complain: (lines: readonly string[], refusal?: Refusal) => void;
}

/** What the daemon refused with: a problem (src/http/README.md, Problems) or the error of another dialect. */
export interface Refusal {
  readonly code: string;
  readonly detail: string;
  readonly body: unknown;
}

/** A place on the terminal: what is shown there replaces what was. */
export interface Live {
  readonly show: Output['show'];
  /** Leaves what was shown last. */
  readonly close: () => void;
}

/** Writes a text over the one before, until it is done. */
export interface Rewrite {
  (text: string): void;
  done(): void;
}

/** Writes text to a stream. */
export type Write = (text: string) => void;

/** What standard output is: the width of a terminal, or null; and whether it takes colours. */
export interface Screen {
  readonly columns: number | null;
  readonly hasColour: boolean;
}

/** A standard output: what it is now, and how it is written over. */
export interface Terminal {
  readonly screen: () => Screen;
  readonly openRewrite: () => Promise<Rewrite>;
}

/** A pipe or a file. */
const noTerminal: Terminal = {
  screen: () => ({ columns: null, hasColour: false }),
  openRewrite: () => Promise.reject(new Error('no terminal is written over')),
};

/** Makes an output of two streams; every text ends with a newline. */
export function createOutput(
  writeResult: Write,
  writeError: Write,
  { screen, openRewrite }: Terminal = noTerminal,
): Output {
  const write = async (shown: Shown, now: number): Promise<string> => {
    const { columns, hasColour } = screen();
    const lines = await layOut(shown, { columns, now });
    return lines.map((line) => `${formatLine(line, hasColour)}\n`).join('');
  };
  return {
    print: (text) => writeResult(`${toVisibleLines(text)}\n`),
    show: async (shown, now = Date.now()) => writeResult(await write(shown, now)),
    openLive: async () => {
      if (screen().columns === null) return null;
      const rewrite = await openRewrite();
      return {
        show: async (shown, now = Date.now()) => rewrite((await write(shown, now)).trimEnd()),
        close: () => rewrite.done(),
      };
    },
    printJson: (value) => writeResult(`${toSafeJson(value)}\n`),
    printJsonLine: (value) => writeResult(`${toSafeJson(value, 0)}\n`),
    complain: (lines) => writeError(`${toVisibleLines(lines.join('\n'))}\n`),
  };
}

/** The process's own streams. */
export const processOutput: Output = createOutput(
  (text) => void process.stdout.write(text),
  (text) => void process.stderr.write(text),
  {
    screen: () => ({
      columns: process.stdout.isTTY ? process.stdout.columns : null,
      // Knows NO_COLOR, FORCE_COLOR, TERM and whether it is a terminal at all.
      hasColour: styleText('bold', '.', { stream: process.stdout }) !== '.',
    }),
    openRewrite: async () => (await import('log-update')).createLogUpdate(process.stdout),
  },
);

const styles = {
  heading: 'bold',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
  faint: 'dim',
} as const;

/** Writes a line without spaces at its end. No control character is in it but those of the colours. */
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

/** Also escapes what controls a terminal and `JSON.stringify` leaves as it is. */
export function toSafeJson(value: unknown, indent: number = 2): string {
  return JSON.stringify(value, null, indent).replaceAll(
    /[\u007F-\u009F\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
