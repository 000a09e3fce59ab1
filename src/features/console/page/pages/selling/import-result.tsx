import type { ApiError } from '../../api.ts';
import { count, counted } from '../../format.ts';
import { Refusal } from '../../parts/action.tsx';
import { Notice } from '../../parts/notice.tsx';
import { Table } from '../../parts/table.tsx';
import { inWordsOfFile, kindsOf, type Rejected } from './import-errors.ts';
import type { Decided, Noun } from './import-mapping.ts';

export type Report = {
  imported: number;
  unchanged: number;
  ignored: string[];
  rejected: Rejected[];
  without_key?: number;
  renewals?: number;
};

export type State =
  | { step: 'idle' }
  | { step: 'running'; done: number; parts: number }
  | { step: 'checked' | 'imported'; report: Report }
  | { step: 'failed'; error: ApiError; report: Report };

/** What a check or an import says about the rows of a file. */
export function ImportResult({ state, noun, columns }: { state: State; noun: Noun; columns: Decided }) {
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
        <LeftOut {...report} />
      </Notice>
      {report.rejected.length > 0 && (
        <Table
          caption="Why rows are rejected"
          rows={kindsOf(report.rejected)}
          columns={[
            { name: 'Why', cell: ({ first }) => inWordsOfFile(first.detail, noun, columns) },
            { name: 'Rows', kind: 'number', cell: ({ rows }) => count(rows) },
            { name: 'First line', kind: 'number', cell: ({ first }) => first.row },
            {
              name: 'There it is',
              cell: ({ first: { value } }) => value !== undefined && <code>{value}</code>,
            },
          ]}
          keyOf={({ kind }) => kind}
        />
      )}
    </>
  );
}

function LeftOut({ without_key: withoutKey = 0, renewals = 0 }: Report) {
  return (
    <>
      {withoutKey > 0 && ` ${counted(withoutKey, 'row')} without a license key left out.`}
      {renewals > 0 && ` ${counted(renewals, 'row')} left out that renew the key of another row.`}
    </>
  );
}
