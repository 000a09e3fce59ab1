import { createContext } from 'preact';
import { useContext, useState } from 'preact/hooks';

/** The options that a command needs to reach this daemon. */
export const CommandOptions = createContext<readonly string[]>([]);

export function commandWith(options: readonly string[], line: string): string {
  return [line, ...options.map(quoted)].join(' ');
}

/** A button that copies a text. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {isCopied ? 'Copied' : label}
    </button>
  );
}

/** A line with a button that copies it: a command, or text such as a secret. */
export function Command({ line: given }: { line: string }) {
  const options = useContext(CommandOptions);
  const line = given.startsWith('latchkey ') ? commandWith(options, given) : given;
  return (
    <div class="command">
      <code>{line}</code>
      <Copy text={line} />
    </div>
  );
}

/** The command that shows the same as a page. */
export function SameCommand({ line }: { line: string }) {
  return (
    <div class="same-command">
      <span class="quiet">The command that does the same:</span>
      <Command line={line} />
    </div>
  );
}

/** A word of a command line, quoted for a shell if it must be. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
