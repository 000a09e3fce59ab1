import { useState } from 'preact/hooks';

/** A command line with a button that copies it. */
export function Command({ line }: { line: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(line).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <div class="command">
      <code>{line}</code>
      <button type="button" onClick={() => void copy()}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
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
