import { useId, useRef, useState } from 'preact/hooks';
import { type ApiError, asApiError, send, withQuery } from '../../api.ts';
import { useCanAct, useDaemon } from '../../daemon.tsx';
import { Refusal } from '../../parts/action.tsx';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { Section } from '../../parts/page.tsx';
import { beginningOf, csvParts, textOf } from './csv-parts.ts';
import { ImportColumns } from './import-columns.tsx';
import { ImportFormat, nothingSaid, type Said } from './import-format.tsx';
import {
  type Choice,
  type Decided,
  guessed,
  mappingOf,
  type Noun,
  openQuestion,
  type Preview,
} from './import-mapping.ts';
import { ImportResult, type Report, type State } from './import-result.tsx';
import { NounChoice } from './noun-choice.tsx';

/** What is imported: the fields above the file. */
type Chosen = { readonly noun: Noun; readonly file: File | null; readonly product: string };

type Choices = Readonly<Record<string, Choice>>;

/** What the daemon says about the file; null: nothing is chosen, or not read yet. */
type Reading = {
  readonly preview: Preview | null;
  readonly said: Said;
  readonly choices: Choices;
  readonly error: ApiError | null;
  readonly isReading: boolean;
};

const nothingRead: Reading = {
  preview: null,
  said: nothingSaid,
  choices: {},
  error: null,
  isReading: false,
};

export function Import() {
  const { chosen, preview, columns, error, state, parameters, isReady, ...acts } = useImport();
  const canAct = useCanAct();
  const isRunning = state.step === 'running';
  const hasRows = state.step === 'checked' && state.report.imported > 0;
  return (
    <Section title="Import">
      <p>
        The first line of the file names its columns. Nothing is written before you have checked the file. An
        import can be repeated: rows that are here already stay as they are.
      </p>
      <ImportFields chosen={chosen} onChange={acts.change} isDisabled={isRunning || !canAct} />
      {error !== null && <Refusal error={error} />}
      {preview !== null && (
        <>
          <ImportFormat
            preview={preview}
            hasStores={chosen.noun !== 'coupon'}
            isDisabled={isRunning}
            onSay={acts.say}
          />
          <ImportColumns
            {...{ noun: chosen.noun, preview, columns, onChoice: acts.decide, isDisabled: isRunning }}
          />
        </>
      )}
      <div class="filters">
        <button
          type="button"
          class="primary"
          disabled={!canAct || !isReady || isRunning}
          onClick={() => void acts.start(true)}
        >
          Check the file
        </button>
        <button
          type="button"
          disabled={!canAct || !isReady || !hasRows}
          onClick={() => void acts.start(false)}
        >
          Import
        </button>
      </div>
      <ImportResult state={state} noun={chosen.noun} columns={columns} />
      <SameCommand line={commandOf(chosen, parameters, preview)} />
    </Section>
  );
}

/** What a person has chosen and decided, how the file is read, and what became of its rows. */
function useImport() {
  const [chosen, setChosen] = useState<Chosen>({ noun: 'license', file: null, product: '' });
  const [state, setState] = useState<State>({ step: 'idle' });
  const { preview, said, choices, error, isReading, read } = useReading();
  const columns = decided(preview, choices);
  const isOpen = columns.some(
    ([column, choice]) => !column.by_store && openQuestion(column, choice) !== null,
  );
  const isRead = preview !== null && error === null && !isReading;
  const parameters = parametersOf(chosen, preview, columns);
  const change = (to: Partial<Chosen>): void => {
    const next = { ...chosen, ...to };
    setChosen(next);
    setState({ step: 'idle' });
    // What a person has decided about the columns stays.
    const isSameFile = preview !== null && next.file === chosen.file && next.noun === chosen.noun;
    void (isSameFile ? read(next, said, choices) : read(next, nothingSaid, null));
  };
  const say = (more: Partial<Said>): void => {
    setState({ step: 'idle' });
    void read(chosen, { ...said, ...more }, null);
  };
  const decide = (name: string, choice: Choice): void => {
    setState({ step: 'idle' });
    void read(chosen, said, { ...choices, [name]: choice });
  };
  const start = async (isDryRun: boolean): Promise<void> => {
    const { file, noun } = chosen;
    if (file === null || preview === null || state.step === 'running') return;
    setState(await importFile(file, { noun, parameters, encoding: preview.encoding, isDryRun }, setState));
  };
  const isReady = isRead && !isOpen && preview.missing.length === 0;
  return { chosen, preview, columns, error, state, parameters, isReady, change, say, decide, start };
}

/** What each column is read as: as a person has decided, or else as the daemon says. */
function decided(preview: Preview | null, choices: Choices): Decided {
  return preview?.columns.map((column) => [column, choices[column.name] ?? guessed(column)] as const) ?? [];
}

/** How much of a file the daemon looks at to say how it is read. */
const previewBytes = 1_000_000;

/** Asks the daemon how a file is read. Only the answer about the last question is shown. */
function useReading() {
  const [reading, setReading] = useState(nothingRead);
  const latest = useRef(0);
  /** `choices`: what the columns are read as; null: the daemon guesses. */
  const read = async (chosen: Chosen, said: Said, choices: Choices | null): Promise<void> => {
    latest.current += 1;
    const turn = latest.current;
    if (chosen.file === null) return setReading(nothingRead);
    // What a person has chosen is shown at once, and its rows when the daemon has answered.
    const before = said === nothingSaid && choices === null ? nothingRead : reading;
    setReading({ ...before, said, choices: choices ?? before.choices, error: null, isReading: true });
    const answer = await ask(chosen, said, choices, before.preview).then(
      (preview) => ({ preview, error: null }),
      (caught: unknown) => ({ preview: before.preview, error: asApiError(caught) }),
    );
    if (turn !== latest.current) return;
    const known = choices ?? choicesOf(answer.preview);
    setReading({ ...answer, said, choices: known, isReading: false });
  };
  return { ...reading, read };
}

/** The guesses, which stay when a person changes one of them. */
function choicesOf(preview: Preview | null): Choices {
  const own = preview?.columns.filter(({ by_store: isByStore }) => !isByStore) ?? [];
  return Object.fromEntries(own.map((column) => [column.name, guessed(column)]));
}

async function ask(
  { noun, file, product }: Chosen,
  said: Said,
  choices: Choices | null,
  before: Preview | null,
): Promise<Preview> {
  if (file === null) throw new Error('no file is chosen');
  const columns = decided(before, choices ?? {});
  // The daemon would recognize a store again.
  const from = choices === null ? said.from : (before?.from ?? 'other');
  const path = withQuery(`/admin/v1/${noun}s/import/preview`, {
    separator: said.separator,
    encoding: said.encoding,
    from: noun === 'coupon' ? '' : from,
    guess: String(choices === null),
    product_key: noun === 'coupon' ? '' : product,
    ...(choices !== null && mappingOf(columns, noun)),
  });
  return await send<Preview>('POST', path, await beginningOf(file, previewBytes));
}

type Parameters = Readonly<Record<'separator' | 'from' | 'map' | 'ignore' | 'product_key', string>>;

/** What is sent with the rows; '' is left out. */
function parametersOf({ noun, product }: Chosen, preview: Preview | null, columns: Decided): Parameters {
  const { separator = 'comma', from = null } = preview ?? {};
  return {
    separator: separator === 'comma' ? '' : separator,
    from: from ?? '',
    ...mappingOf(columns, noun),
    product_key: noun === 'coupon' ? '' : product,
  };
}

function commandOf({ noun, file }: Chosen, parameters: Parameters, preview: Preview | null): string {
  const { product_key: product, ...others } = parameters;
  const encoding = preview?.encoding === 'windows-1252' ? preview.encoding : '';
  const options = Object.entries({ encoding, ...others, product }).filter(([, value]) => value !== '');
  const words = options.map(([name, value]) => `--${name} ${quoted(value)}`);
  return [`latchkey ${noun} import`, file === null ? 'FILE' : quoted(file.name), ...words].join(' ');
}

function ImportFields({
  chosen: { noun, product },
  onChange,
  isDisabled,
}: {
  chosen: Chosen;
  onChange: (to: Partial<Chosen>) => void;
  /** A file is being sent: its result is about these values. */
  isDisabled: boolean;
}) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const { products } = useDaemon();
  return (
    <div class="pair">
      <NounChoice noun={noun} onNoun={(each) => onChange({ noun: each })} isDisabled={isDisabled} />
      <div class="field">
        <label for={`${id}-file`}>CSV file</label>
        <input
          id={`${id}-file`}
          ref={input}
          type="file"
          accept=".csv,.tsv,.txt,text/csv"
          disabled={isDisabled}
          onChange={() => onChange({ file: input.current?.files?.[0] ?? null })}
        />
      </div>
      {noun !== 'coupon' && (
        <div class="field">
          <label for={`${id}-product`}>Product of rows that name none</label>
          <select
            id={`${id}-product`}
            disabled={isDisabled}
            onChange={(event) => onChange({ product: event.currentTarget.value })}
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
/** The rows of the export of a store belong together: a later row may renew the key of an earlier one. */
const wholeLimits = { records: 10_000, characters: 2_000_000 };

/** Sends a file part by part. Rows that were imported before a failure stay. */
async function importFile(
  file: File,
  {
    noun,
    parameters,
    encoding,
    isDryRun,
  }: { noun: Noun; parameters: Parameters; encoding: Preview['encoding']; isDryRun: boolean },
  onState: (state: State) => void,
): Promise<State> {
  const report: Report = { imported: 0, unchanged: 0, ignored: [], rejected: [] };
  const path = withQuery(`/admin/v1/${noun}s/import`, { ...parameters, dry_run: String(isDryRun) });
  try {
    const isWhole = parameters.from !== '';
    const parts = csvParts(textOf(await file.arrayBuffer(), encoding), isWhole ? wholeLimits : limits);
    if (isWhole && parts.length > 1)
      throw new Error('The export has more rows than the page can send: import it with the command below.');
    for (const [index, { text, line }] of parts.entries()) {
      onState({ step: 'running', done: index, parts: parts.length });
      add(report, await send<Report>('POST', path, text), line);
    }
    return { step: isDryRun ? 'checked' : 'imported', report };
  } catch (caught) {
    return { step: 'failed', error: asApiError(caught), report };
  }
}

/** Adds the report of a part that begins at a line of the file. */
function add(report: Report, part: Report, line: number): void {
  report.imported += part.imported;
  report.unchanged += part.unchanged;
  report.ignored = part.ignored;
  // The header is the first line of each part.
  report.rejected.push(...part.rejected.map((row) => ({ ...row, row: row.row + line - 2 })));
  report.without_key = (report.without_key ?? 0) + (part.without_key ?? 0);
  report.renewals = (report.renewals ?? 0) + (part.renewals ?? 0);
}
