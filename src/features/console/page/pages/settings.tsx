import type { ConfigObject } from '../../wire/console.ts';
import type { ReloadObject } from '../../../../wire/status.ts';
import { send } from '../api.ts';
import { counted } from '../format.ts';
import type { PageProps } from '../page-props.ts';
import { Action, Field } from '../parts/action.tsx';
import { SameCommand } from '../parts/command.tsx';
import { FilterForm } from '../parts/filter.tsx';
import { Badge, Notice } from '../parts/notice.tsx';
import { Heading } from '../parts/page.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { useData } from '../use-data.ts';

type Setting = ConfigObject['settings'][number];

const columns: readonly Column<Setting>[] = [
  { name: 'Setting', cell: ({ key }) => <code>{key}</code> },
  { name: 'Value', cell: ({ value }) => <code>{value}</code> },
  {
    name: 'Source',
    cell: ({ source, origin }) => (
      <>
        <Badge tone={source === 'default' ? 'quiet' : 'ok'}>{source}</Badge>{' '}
        {origin !== null && <span class="quiet">{origin}</span>}
      </>
    ),
  },
];

/** The effective configuration, with the source of each value. */
export function Settings({ route: { query } }: PageProps) {
  const { data, error, reload } = useData<ConfigObject>('/admin/v1/config');
  return (
    <>
      <Heading title="Settings">
        <Action
          label="Reload"
          title="Read the configuration again?"
          consequence="The daemon reads its configuration file and applies what changed. If the file has a mistake, nothing changes."
          command="latchkey reload"
          run={reloadConfiguration}
          onDone={reload}
        />
      </Heading>
      {error !== null && <Notice tone="fail">{error.message}</Notice>}
      {data !== null && <Content config={data} query={query} />}
      <SameCommand line="latchkey config show" />
    </>
  );
}

async function reloadConfiguration() {
  const { changed, restart } = await send<ReloadObject>('POST', '/admin/v1/reload', {});
  return (
    <>
      <p>{changed.length === 0 ? 'Nothing changed.' : `Changed: ${changed.join(', ')}.`}</p>
      {restart.length > 0 && (
        <Notice tone="warn">A new value of {restart.join(', ')} needs a restart of the daemon.</Notice>
      )}
    </>
  );
}

function Content({ config: { file, settings }, query }: { config: ConfigObject; query: URLSearchParams }) {
  const text = query.get('text') ?? '';
  const isGiven = query.get('source') === 'given';
  const shown = settings.filter(
    ({ key, value, source }) =>
      `${key} ${value}`.toLowerCase().includes(text.toLowerCase()) && (!isGiven || source !== 'default'),
  );
  return (
    <>
      <p class="quiet">
        {file === null ? (
          'There is no configuration file: all values are defaults, or come from the environment and the options.'
        ) : (
          <>
            The file is <code>{file}</code>. Secrets are shown as <code>***</code>.
          </>
        )}
      </p>
      <FilterForm path={['settings']} query={query} names={['text', 'source']}>
        <Field label="Contains" name="text" type="search" value={text} />
        <Field
          label="Source"
          name="source"
          value={query.get('source') ?? ''}
          options={[
            ['', 'all'],
            ['given', 'not a default'],
          ]}
        />
      </FilterForm>
      {shown.length === 0 ? (
        <p class="empty">No setting fits this filter.</p>
      ) : (
        <>
          <Table
            caption={counted(shown.length, 'setting')}
            rows={shown}
            columns={columns}
            keyOf={({ key }) => key}
          />
        </>
      )}
    </>
  );
}
