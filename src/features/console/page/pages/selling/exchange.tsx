import { useId, useRef, useState } from 'preact/hooks';
import { type ApiError, asApiError, call, send, withQuery } from '../../api.ts';
import { useCanAct, useDaemon } from '../../daemon.tsx';
import { count, counted } from '../../format.ts';
import { CannotAct } from '../../parts/cannot-act.tsx';
import { save } from '../../parts/download.tsx';
import { Refusal } from '../../parts/action.tsx';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { Notice } from '../../parts/notice.tsx';
import { Heading, Section } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

import { csvParts, textOf } from './csv-parts.ts';

const nouns = ['license', 'purchase', 'coupon'] as const;
type Noun = (typeof nouns)[number];

const meanings: Readonly<Record<Noun, string>> = {
  license: 'Licenses: keys with their customers, counts and states',
  purchase: 'Purchases, with the licenses that came with them',
  coupon: 'Coupons of the account',
};

/** Import from another store, and export for another store, as CSV. */
export function Exchange() {
  return (
    <>
      <Heading title="Import and export" />
      {!useCanAct() && <CannotAct />}
      <Import />
      <Export />
    </>
  );
}

type Rejected = { row: number; code: string; detail: string; value?: string };
type Report = {
  imported: number;
  unchanged: number;
  ignored: string[];
  rejected: Rejected[];
};

type State =
  | { step: 'idle' }
  | { step: 'running'; done: number; parts: number }
  | { step: 'checked' | 'imported'; report: Report }
  | { step: 'failed'; error: ApiError; report: Report };

function Import() {
  const [noun, setNoun] = useState<Noun>('license');
  const [file, setFile] = useState<File | null>(null);
  const [product, setProduct] = useState('');
  const [state, setState] = useState<State>({ step: 'idle' });
  const canAct = useCanAct();
  const start = async (isDryRun: boolean): Promise<void> => {
    if (file === null || state.step === 'running') return;
    setState(await importFile(file, { noun, product, isDryRun }, setState));
  };
  const reset = (): void => setState({ step: 'idle' });
  const isRunning = state.step === 'running';
  return (
    <Section title="Import">
      <p>
        The first line of the file names the columns, as in an export. Other columns are ignored, but not one
        that looks like a state of a key: import such a file with the command. An import can be repeated: rows
        that are here already stay as they are.
      </p>
      <ImportFields
        noun={noun}
        onNoun={(chosen) => (setNoun(chosen), reset())}
        onFile={(chosen) => (setFile(chosen), reset())}
        product={product}
        onProduct={(chosen) => (setProduct(chosen), reset())}
        isDisabled={isRunning}
      />
      <div class="filters">
        <button
          type="button"
          class="primary"
          disabled={!canAct || file === null || isRunning}
          onClick={() => void start(true)}
        >
          Check the file
        </button>
        <button
          type="button"
          disabled={!canAct || state.step !== 'checked' || state.report.imported === 0}
          onClick={() => void start(false)}
        >
          Import
        </button>
      </div>
      <Result state={state} />
      <SameCommand
        line={`latchkey ${noun} import ${file === null ? 'FILE' : quoted(file.name)}${product === '' ? '' : ` --product ${quoted(product)}`}`}
      />
    </Section>
  );
}

function ImportFields({
  noun,
  onNoun,
  onFile,
  product,
  onProduct,
  isDisabled,
}: {
  noun: Noun;
  onNoun: (noun: Noun) => void;
  onFile: (file: File | null) => void;
  product: string;
  onProduct: (product: string) => void;
  /** A file is being sent: its result is about these values. */
  isDisabled: boolean;
}) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const { products } = useDaemon();
  return (
    <div class="filters">
      <NounChoice noun={noun} onNoun={onNoun} isDisabled={isDisabled} />
      <div class="field">
        <label for={`${id}-file`}>CSV file</label>
        <input
          id={`${id}-file`}
          ref={input}
          type="file"
          accept=".csv,text/csv"
          disabled={isDisabled}
          onChange={() => onFile(input.current?.files?.[0] ?? null)}
        />
      </div>
      {noun !== 'coupon' && (
        <div class="field">
          <label for={`${id}-product`}>Product of rows that name none</label>
          <select
            id={`${id}-product`}
            disabled={isDisabled}
            onChange={(event) => onProduct(event.currentTarget.value)}
          >
            <option value="">none</option>
            {products?.map(({ product_key: key, name }) => (
              <option key={key} value={key} selected={key === product}>
                {name}
              </option>
            ))}
          </select>
        </div>
      )}
    </div>
  );
}

/** What one request can have: the daemon takes 10,000 rows and 4 MiB. */
const limits = { records: 2_000, characters: 1_000_000 };

/** Sends a file part by part. Rows that were imported before a failure stay. */
async function importFile(
  file: File,
  { noun, product, isDryRun }: { noun: Noun; product: string; isDryRun: boolean },
  onState: (state: State) => void,
): Promise<State> {
  const report: Report = { imported: 0, unchanged: 0, ignored: [], rejected: [] };
  const path = withQuery(`/admin/v1/${noun}s/import`, {
    product_key: noun === 'coupon' ? '' : product,
    dry_run: String(isDryRun),
  });
  try {
    const parts = csvParts(textOf(await file.arrayBuffer()), limits);
    for (const [index, { text, line }] of parts.entries()) {
      onState({ step: 'running', done: index, parts: parts.length });
      const part = await send<Report>('POST', path, text);
      report.imported += part.imported;
      report.unchanged += part.unchanged;
      report.ignored = part.ignored;
      // The header is the first line of each part.
      report.rejected.push(...part.rejected.map((row) => ({ ...row, row: row.row + line - 2 })));
    }
    return { step: isDryRun ? 'checked' : 'imported', report };
  } catch (caught) {
    return { step: 'failed', error: asApiError(caught), report };
  }
}

function Result({ state }: { state: State }) {
  if (state.step === 'idle') return null;
  if (state.step === 'running') {
    return (
      <p role="status">
        Part {state.done + 1} of {state.parts} …
      </p>
    );
  }
  const { report } = state;
  const rejectedRows = new Set(report.rejected.map(({ row }) => row)).size;
  const verb = state.step === 'checked' ? 'can be imported' : 'imported';
  return (
    <>
      {state.step === 'failed' && <Refusal error={state.error} />}
      <Notice tone={rejectedRows > 0 ? 'warn' : 'ok'}>
        {counted(report.imported, 'row')} {verb}, {count(report.unchanged)} here already,{' '}
        {count(rejectedRows)} rejected.
        {report.ignored.length > 0 && ` Ignored columns: ${report.ignored.join(', ')}.`}
      </Notice>
      {report.rejected.length > 0 && (
        <Table
          caption="Why rows are rejected"
          rows={kindsOf(report.rejected)}
          columns={[
            { name: 'Why', cell: ({ first }) => first.detail },
            { name: 'Rows', kind: 'number', cell: ({ rows }) => count(rows) },
            { name: 'First line', kind: 'number', cell: ({ first }) => first.row },
            {
              name: 'There it is',
              cell: ({ first: { value } }) => value !== undefined && <code>{value}</code>,
            },
          ]}
          keyOf={({ first }) => first.detail}
        />
      )}
    </>
  );
}

type Kind = { first: Rejected; rows: number };

/** The rejected rows by what is wrong, the most frequent first. */
function kindsOf(rejected: readonly Rejected[]): readonly Kind[] {
  const kinds = new Map<string, Kind>();
  for (const row of rejected) {
    const rows = (kinds.get(row.detail)?.rows ?? 0) + 1;
    kinds.set(row.detail, { first: kinds.get(row.detail)?.first ?? row, rows });
  }
  return [...kinds.values()].toSorted((one, other) => other.rows - one.rows);
}

function NounChoice({
  noun,
  onNoun,
  isDisabled = false,
}: {
  noun: Noun;
  onNoun: (noun: Noun) => void;
  isDisabled?: boolean;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>What</label>
      <select id={id} disabled={isDisabled} onChange={(event) => onNoun(event.currentTarget.value as Noun)}>
        {nouns.map((each) => (
          <option key={each} value={each} selected={each === noun}>
            {meanings[each]}
          </option>
        ))}
      </select>
    </div>
  );
}

function Export() {
  const [noun, setNoun] = useState<Noun>('license');
  const [error, setError] = useState<ApiError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const canAct = useCanAct();
  const start = async (): Promise<void> => {
    setRunning(true);
    setError(null);
    try {
      const response = await call('GET', `/admin/v1/${noun}s/export`);
      save(await response.blob(), `${noun}s.csv`);
    } catch (caught) {
      setError(asApiError(caught));
    }
    setRunning(false);
  };
  return (
    <Section title="Export">
      <p>The file has whole license keys and e-mail addresses: keep it where only you can read it.</p>
      <div class="filters">
        <NounChoice noun={noun} onNoun={setNoun} />
        <button type="button" disabled={!canAct || isRunning} onClick={() => void start()}>
          {isRunning ? 'Exporting …' : 'Export'}
        </button>
      </div>
      {error !== null && <Refusal error={error} />}
      <SameCommand line={`latchkey ${noun} export ${noun}s.csv`} />
    </Section>
  );
}
