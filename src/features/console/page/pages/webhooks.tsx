import { useEffect, useState } from 'preact/hooks';
import type { StatusObject } from '../../../../wire/status.ts';
import type {
  AttemptObject,
  DeliveryObject,
  ReplayObject,
  WebhookObject,
} from '../../../webhooks/wire/webhook.ts';
import { call, send } from '../api.ts';
import { count } from '../format.ts';
import type { PageProps } from '../page-props.ts';
import { Action, Checkboxes, Field, fieldText } from '../parts/action.tsx';
import { quoted, SameCommand } from '../parts/command.tsx';
import { Badge, Notice, type Tone } from '../parts/notice.tsx';
import { Heading, Section } from '../parts/page.tsx';
import { Secret } from '../parts/secret.tsx';
import { ListTable, Table, type Column } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';
import { usePages } from '../use-data.ts';

/** Events that other systems get, and events of stores that this agent has received. */
export function Webhooks({ route, overview }: PageProps) {
  const [, id] = route.path;
  if (id !== undefined) return <Deliveries id={id} />;
  return <Endpoints isAgent={overview.data?.role === 'agent'} />;
}

function pathOf(id: string): string {
  return `/admin/v1/webhooks/${encodeURIComponent(id)}`;
}

function Endpoints({ isAgent }: { isAgent: boolean }) {
  const pages = usePages<WebhookObject>('/admin/v1/webhooks?limit=50', 'webhooks');
  return (
    <>
      <Heading title="Webhooks">
        <Add onDone={pages.reload} />
      </Heading>
      <Section title="Events to other systems">
        <ListTable
          caption="Endpoints that get events"
          pages={pages}
          columns={columnsOf(pages.reload)}
          keyOf={({ webhook_id: id }) => id}
          empty="No other system gets events."
        />
        <SameCommand line="latchkey webhook list" />
      </Section>
      {isAgent && <Senders />}
    </>
  );
}

const tones: Readonly<Record<WebhookObject['state'], Tone>> = {
  active: 'ok',
  failing: 'warn',
  paused: 'fail',
};

function columnsOf(onDone: () => void): readonly Column<WebhookObject>[] {
  return [
    {
      name: 'Endpoint',
      cell: ({ webhook_id: id, url }) => (
        <>
          <a href={hrefTo(['webhooks', id])}>{url}</a>
          <br />
          <code class="quiet id">{id}</code>
        </>
      ),
    },
    { name: 'Events', cell: ({ events }) => events?.join(', ') ?? 'all' },
    {
      name: 'State',
      cell: ({ state, last_error: error }) => (
        <>
          <Badge tone={tones[state]}>{state}</Badge>
          {error !== null && (
            <>
              <br />
              <span class="quiet">{error}</span>
            </>
          )}
        </>
      ),
    },
    { name: 'Waiting', kind: 'number', cell: ({ waiting }) => count(waiting) },
    { name: 'Last success', cell: ({ last_success_at: at }) => (at === null ? 'never' : <Time at={at} />) },
    { name: 'Actions', cell: (webhook) => <Actions webhook={webhook} onDone={onDone} /> },
  ];
}

function Actions({ webhook, onDone }: { webhook: WebhookObject; onDone: () => void }) {
  const { webhook_id: id, url, state } = webhook;
  const command = (name: string): string => `latchkey webhook ${name} ${quoted(id)}`;
  return (
    <>
      <Action
        label="Test"
        about={url}
        title={`Send a test event to ${url}`}
        consequence="The endpoint gets an event of the type webhook.test now. The result changes nothing."
        command={command('test')}
        run={async () => <Result attempt={await send<AttemptObject>('POST', `${pathOf(id)}/test`)} />}
      />
      {state !== 'active' && (
        <Action
          label="Resume"
          about={url}
          title={`Deliver to ${url} again`}
          consequence="The endpoint gets at once what it has missed in the last 30 days."
          command={command('resume')}
          run={() => send('POST', `${pathOf(id)}/resume`)}
          onDone={onDone}
        />
      )}
      <Action
        label="Rotate"
        about={url}
        title={`Replace the secret of ${url}`}
        consequence="The new secret is shown once. For a day each event is signed with both secrets: change the receiver within that day."
        command={command('rotate')}
        run={async () => {
          const { secret = '' } = await send<WebhookObject>('POST', `${pathOf(id)}/rotate`);
          return <Secret name="secret" secret={secret} />;
        }}
        onDone={onDone}
      />
      <Action
        label="Remove"
        about={url}
        title={`Remove ${url}`}
        consequence="The endpoint gets no further event, and the events that wait for it are not sent."
        command={command('remove')}
        isDangerous
        run={() => send('DELETE', pathOf(id))}
        onDone={onDone}
      />
    </>
  );
}

function Result({ attempt: { delivered, status, error, duration_ms: ms } }: { attempt: AttemptObject }) {
  return delivered ? (
    <Notice tone="ok">
      Delivered: the endpoint answered {status} after {count(ms)} ms.
    </Notice>
  ) : (
    <Notice tone="fail">
      Not delivered: {error} (after {count(ms)} ms).
    </Notice>
  );
}

type EventType = NonNullable<WebhookObject['events']>[number];

const events: readonly (readonly [type: EventType, meaning: string])[] = [
  ['license.issued', 'a license key was sold'],
  ['license.disabled', 'a license was disabled'],
  ['license.enabled', 'a license was enabled'],
  ['purchase.refunded', 'a sale was refunded'],
  ['seat.taken', 'a device took a seat'],
  ['seat.ended', 'a device lost its seat'],
  ['lease.expiring', 'a lease ends in three days and was not renewed'],
  ['outbox.needs_review', 'a change waits for a person'],
  ['upstream.down', 'the upstream is unavailable'],
  ['upstream.up', 'the upstream answers again'],
];

function chosen(form: FormData): string[] {
  return form.getAll('events').filter((each) => typeof each === 'string');
}

function Add({ onDone }: { onDone: () => void }) {
  return (
    <Action
      label="Add an endpoint"
      title="Add an endpoint"
      consequence="The endpoint gets events from now on, signed as Standard Webhooks says. Its secret is shown once: the receiver needs it."
      command={(form) => {
        const types = chosen(form).join(',');
        const url = fieldText(form, 'url');
        return `latchkey webhook add ${url === '' ? 'URL' : quoted(url)}${types === '' ? '' : ` --events ${types}`}`;
      }}
      run={async (form) => {
        const types = chosen(form);
        const body = { url: fieldText(form, 'url'), ...(types.length > 0 && { events: types }) };
        const { secret = '' } = await send<WebhookObject>('POST', '/admin/v1/webhooks', body);
        return <Secret name="secret" secret={secret} />;
      }}
      onDone={onDone}
    >
      <Field label="URL" name="url" isRequired example="https://example.com/latchkey" />
      <Checkboxes legend="Events (none chosen: all)" name="events" choices={events} />
    </Action>
  );
}

function Deliveries({ id }: { id: string }) {
  const pages = usePages<DeliveryObject>(`${pathOf(id)}/deliveries?limit=50`, 'deliveries');
  return (
    <>
      <Heading title="Deliveries" />
      <p>
        <a href={hrefTo(['webhooks'])}>All webhooks</a>, endpoint <code>{id}</code>
      </p>
      <ListTable
        caption="Events that were sent to the endpoint, the latest first"
        pages={pages}
        columns={deliveryColumns(pages.reload)}
        keyOf={({ event_id: event }) => event}
        empty="No event was sent yet."
      />
      <SameCommand line={`latchkey webhook deliveries ${quoted(id)}`} />
    </>
  );
}

function deliveryColumns(onDone: () => void): readonly Column<DeliveryObject>[] {
  return [
    {
      name: 'Event',
      cell: ({ type, event_id: event }) => (
        <>
          {type}
          <br />
          <code class="quiet id">{event}</code>
        </>
      ),
    },
    {
      name: 'State',
      cell: ({ state, error }) => (
        <>
          <Badge tone={state === 'delivered' ? 'ok' : 'fail'}>{state}</Badge>{' '}
          {error !== null && <span class="quiet">{error}</span>}
        </>
      ),
    },
    { name: 'Attempts', kind: 'number', cell: ({ attempts }) => count(attempts) },
    { name: 'Last attempt', cell: ({ at }) => <Time at={at} /> },
    { name: 'Actions', cell: (delivery) => <Replay delivery={delivery} onDone={onDone} /> },
  ];
}

function Replay({
  delivery: { event_id: event, type },
  onDone,
}: {
  delivery: DeliveryObject;
  onDone: () => void;
}) {
  return (
    <Action
      label="Replay"
      about={`${type} ${event}`}
      title={`Send ${type} again`}
      consequence="Every endpoint that gets events of this type gets the event again, under the same id."
      command={`latchkey webhook replay ${quoted(event)}`}
      run={async () => {
        const { attempts } = await send<ReplayObject>(
          'POST',
          `/admin/v1/webhook-events/${encodeURIComponent(event)}/replay`,
        );
        return (
          <>
            {attempts.map((attempt) => (
              <div key={attempt.webhook_id}>
                <p>{attempt.url}</p>
                <Result attempt={attempt} />
              </div>
            ))}
          </>
        );
      }}
      onDone={onDone}
    />
  );
}

type Sender = NonNullable<StatusObject['store_events']>['senders'][number];

const refusals: Readonly<Record<NonNullable<Sender['last_refusal']>, string>> = {
  wrong_signature: 'wrong signature',
  not_understood: 'not understood',
};

/** What came from stores. `/statusz` has no envelope. */
function Senders() {
  const [senders, setSenders] = useState<readonly Sender[] | null>(null);
  useEffect(() => {
    const read = async (): Promise<void> => {
      const response = await call('GET', '/statusz');
      const status = (await response.json()) as StatusObject;
      setSenders(status.store_events?.senders ?? []);
    };
    read().catch(() => undefined);
  }, []);
  if (senders === null) return null;
  return (
    <Section title="Events of stores">
      {senders.length === 0 ? (
        <p class="empty">
          No store sends events to this agent. Name it in <code>webhooks.in</code>.
        </p>
      ) : (
        <Table
          caption="Stores that send events, and the last event since the start"
          rows={senders}
          columns={senderColumns}
          keyOf={({ name }) => name}
        />
      )}
    </Section>
  );
}

const senderColumns: readonly Column<Sender>[] = [
  { name: 'Name', cell: ({ name }) => name },
  { name: 'Sender', cell: ({ from }) => from },
  { name: 'Last event', cell: ({ last_event_at: at }) => (at === null ? 'none' : <Time at={at} />) },
  {
    name: 'Last refusal',
    cell: ({ last_refused_at: at, last_refusal: refusal }) =>
      at === null || refusal === null ? (
        'none'
      ) : (
        <>
          <Badge tone="warn">{refusals[refusal]}</Badge> <Time at={at} />
        </>
      ),
  },
];
