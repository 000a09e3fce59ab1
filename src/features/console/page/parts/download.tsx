import { useState } from 'preact/hooks';
import { type ApiError, asApiError } from '../api.ts';
import { csvOf, type Row } from '../csv.ts';
import { Notice } from './notice.tsx';

/** Saves a file on the machine of the person. */
export function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const formats = {
  csv: { text: 'CSV', type: 'text/csv', write: csvOf },
  jsonl: {
    text: 'JSON lines',
    type: 'application/jsonl',
    write: (rows: readonly Row[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
  },
} as const;

/** Buttons that save rows, such as a whole list with its filter. */
export function Download({ name, read }: { name: string; read: () => Promise<readonly Row[]> }) {
  const [error, setError] = useState<ApiError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const start = async (format: keyof typeof formats): Promise<void> => {
    const { type, write } = formats[format];
    setRunning(true);
    setError(null);
    try {
      const rows = await read();
      save(new Blob([write(rows)], { type }), `${name}.${format}`);
    } catch (caught) {
      setError(asApiError(caught));
    }
    setRunning(false);
  };
  return (
    <>
      {(['csv', 'jsonl'] as const).map((format) => (
        <button key={format} type="button" disabled={isRunning} onClick={() => void start(format)}>
          Download {formats[format].text}
        </button>
      ))}
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
    </>
  );
}
