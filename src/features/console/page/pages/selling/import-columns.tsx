import { useId } from 'preact/hooks';
import { counted } from '../../format.ts';
import { Notice } from '../../parts/notice.tsx';
import { Table } from '../../parts/table.tsx';
import {
  type Choice,
  type Decided,
  type FileColumn,
  isState,
  labels,
  meaningsOf,
  type Noun,
  openQuestion,
  type Preview,
  type State,
  waysOf,
  wordText,
} from './import-mapping.ts';

type OnChoice = (name: string, choice: Choice) => void;

/** The columns of a file, what each is read as, and the first rows as they would be imported. */
export function ImportColumns({
  noun,
  preview,
  columns,
  onChoice,
  isDisabled,
}: {
  noun: Noun;
  preview: Preview;
  columns: Decided;
  onChoice: OnChoice;
  isDisabled: boolean;
}) {
  const list = { noun, onChoice, isDisabled };
  // The export of a store has many columns.
  const isOther = ([{ by_store: isByStore, state }]: Decided[number]): boolean =>
    preview.from !== null && !isByStore && !state;
  const others = columns.filter(isOther);
  const ignored = columns.filter(([{ by_store: isByStore }, { as }]) => as === '' && !isByStore);
  return (
    <>
      <h3>Columns of the file</h3>
      {preview.missing.length > 0 && (
        <Notice tone="warn">
          No column is read as: {preview.missing.map((name) => labels[noun][name] ?? name).join(', ')}. Choose
          it below.
        </Notice>
      )}
      <ColumnList columns={columns.filter((each) => !isOther(each))} {...list} />
      {others.length > 0 && (
        <details>
          <summary>
            {counted(others.length, 'other column')}, which that store has and an import does not
          </summary>
          <ColumnList columns={others} {...list} />
        </details>
      )}
      {ignored.length > 0 && (
        <p class="quiet">Not imported: {ignored.map(([{ name }]) => name).join(', ')}.</p>
      )}
      <FirstRows noun={noun} rows={preview.rows} />
    </>
  );
}

function ColumnList({ columns, ...list }: Omit<ChoiceProps, 'column' | 'choice'> & { columns: Decided }) {
  return (
    <ul class="import-columns">
      {columns.map(([column, choice]) => (
        <li key={column.name}>
          <ColumnChoice {...{ column, choice, ...list }} />
        </li>
      ))}
    </ul>
  );
}

type Row = Preview['rows'][number];

function FirstRows({ noun, rows }: { noun: Noun; rows: readonly Row[] }) {
  const isUsed = (ours: string): boolean =>
    rows.some(({ cells }) => cells !== null && Object.hasOwn(cells, ours));
  const fault = {
    name: 'Why it is rejected',
    cell: ({ detail }: Row) => detail !== null && `The row ${detail}.`,
  };
  return (
    <Table
      caption="The first rows as they would be imported"
      rows={rows}
      columns={[
        { name: 'Line', kind: 'number', cell: ({ line }: Row) => line },
        ...Object.entries(labels[noun])
          .filter(([ours]) => isUsed(ours))
          .map(([ours, name], index) => ({
            name,
            ...(index === 0 && { place: 'main' as const }),
            cell: ({ cells }: Row) => shown(ours, cells?.[ours]),
          })),
        ...(rows.some(({ detail }) => detail !== null) ? [fault] : []),
      ]}
      keyOf={({ line }) => line}
    />
  );
}

/** A state is shown in the words of the choices. */
function shown(ours: string, cell: string | undefined): string | undefined {
  if (!isState(ours)) return cell;
  const [yes, no] = answers[ours];
  return { true: yes, false: no }[cell ?? ''] ?? cell;
}

type ChoiceProps = {
  noun: Noun;
  column: FileColumn;
  choice: Choice;
  onChoice: OnChoice;
  isDisabled: boolean;
};

function ColumnChoice(props: ChoiceProps) {
  const { noun, column, choice, onChoice, isDisabled } = props;
  const { name, values, by_store: isByStore, read_as: readAs } = column;
  const part = { name, choice, onChoice, isDisabled };
  return (
    <>
      <div>
        <strong>{name}</strong>
        <p class="quiet">{values.map((value) => (value === '' ? '–' : value)).join(' · ')}</p>
      </div>
      {isByStore ? (
        <p>{labels[noun][readAs ?? ''] ?? readAs}, as that store writes it</p>
      ) : (
        <ReadAs {...props} />
      )}
      {!isByStore && isState(choice.as) && <Words as={choice.as} {...part} />}
    </>
  );
}

/** What a column is read as, with what a person must still say about it. */
function ReadAs({ noun, column, choice, onChoice, isDisabled }: ChoiceProps) {
  const id = useId();
  const { name, words } = column;
  const question = openQuestion(column, choice);
  const read = (as: string): void => onChoice(name, { as, how: null, words: meaningsOf(words, as) });
  return (
    <div class="field">
      <label for={id}>Read {name} as</label>
      <select
        id={id}
        disabled={isDisabled}
        aria-invalid={question === null ? undefined : true}
        aria-describedby={question === null ? undefined : `${id}-error`}
        onChange={(event) => read(event.currentTarget.value)}
      >
        {choice.as === null && (
          <option value="" selected disabled>
            choose
          </option>
        )}
        <option value="" selected={choice.as === ''}>
          not imported
        </option>
        {Object.entries(labels[noun]).map(([ours, label]) => (
          <option key={ours} value={ours} selected={ours === choice.as}>
            {label}
          </option>
        ))}
      </select>
      <Ways {...{ name, choice, onChoice, isDisabled }} />
      {question !== null && (
        <p class="field-error" id={`${id}-error`}>
          {question}
        </p>
      )}
    </div>
  );
}

type PartProps = { name: string; choice: Choice; onChoice: OnChoice; isDisabled: boolean };

/** The unit of amounts, or the order of dates. */
function Ways({ name, choice, onChoice, isDisabled }: PartProps) {
  const ways = waysOf(choice.as);
  if (ways.length === 0) return null;
  return (
    <select
      aria-label={`How ${name} is written`}
      disabled={isDisabled}
      onChange={(event) => onChoice(name, { ...choice, how: event.currentTarget.value || null })}
    >
      <option value="" selected={choice.how === null}>
        {ways.some(([way]) => way === 'money') ? 'choose' : 'as it is, such as 2025-02-01'}
      </option>
      {ways.map(([way, text]) => (
        <option key={way} value={way} selected={way === choice.how}>
          {text}
        </option>
      ))}
    </select>
  );
}

const answers: Readonly<Record<State, readonly [yes: string, no: string]>> = {
  enabled: ['enabled', 'disabled'],
  refunded: ['refunded', 'not refunded'],
};

/** What each word of a state says. */
function Words({ as, name, choice, onChoice, isDisabled }: PartProps & { as: State }) {
  const words = Object.entries(choice.words);
  if (words.length === 0) return null;
  const mean = (word: string, yes: boolean): void =>
    onChoice(name, { ...choice, words: { ...choice.words, [word]: yes } });
  return (
    <fieldset class="import-words" disabled={isDisabled}>
      <legend>What the words of {name} mean</legend>
      {words.map(([word, meaning]) => (
        <label key={word}>
          <span>{wordText(word)}</span>
          <select onChange={(event) => mean(word, event.currentTarget.value === 'yes')}>
            {meaning === null && (
              <option value="" selected disabled>
                choose
              </option>
            )}
            <option value="yes" selected={meaning === true}>
              {answers[as][0]}
            </option>
            <option value="no" selected={meaning === false}>
              {answers[as][1]}
            </option>
          </select>
        </label>
      ))}
    </fieldset>
  );
}
