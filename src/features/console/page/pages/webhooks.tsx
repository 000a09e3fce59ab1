import { useEffect, useState } from 'preact/hooks';
import type { StatusObject } from '../../../../wire/status.ts';
import type { Attempt, Delivery, Webhook } from '../answers.ts';
import { call, send } from '../api.ts';
import { useDaemon } from '../daemon.tsx';
import { count } from '../format.ts';
import type { PageProps } from '../page-props.ts';
import { Checkboxes, Field, fieldText, taken } from '../parts/action.tsx';
import { quoted } from '../parts/command.tsx';
import { Id } from '../parts/id.tsx';
import { ListPage, type List } from '../parts/list.tsx';
import { Badge, Notice, type Tone } from '../parts/notice.tsx';
import { Section } from '../parts/page.tsx';
import { Secret } from '../parts/secret.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { hrefTo } from '../router.ts';

/** Events that other systems get, and events of stores that this agent has received. */
export function Webhooks({ route: { path } }: PageProps) {
  const [, id] = path;
  const isAgent = useDaemon().role === 'agent';
  if (id !== undefined) return <ListPage list={deliveriesOf(id)} />;
  return <ListPage list={webhooks}>{isAgent && <Senders />}</ListPage>;
}

function pathOf(id: string): string {
  return `/admin/v1/webhooks/${encodeURIComponent(id)}`;
}

const tones: Readonly<Record<Webhook['state'], Tone>> = {
  active: 'ok',
  failing: 'warn',
  paused: 'fail',
};

const webhooks: List<Webhook> = {
  title: 'Webhooks',
  section: 'Events to other systems',
  from: ['/admin/v1/webhooks', 'webhooks', 50],
  command: 'latchkey webhook list',
  caption: 'Endpoints that get events',
  empty:
    'No other system gets events yet. “Add an endpoint” sends them to an address of yours, such as one of your shop.',
  keyOf: ({ webhook_id: id }) => id,
  nameOf: ({ url }) => url,
  columns: [
    {
      name: 'Endpoint',
      cell: ({ webhook_id: id, url }) => <a href={hrefTo(['webhooks', id])}>{url}</a>,
      below: ({ webhook_id: id }) => <Id of={id} />,
    },
    { name: 'Events', kind: 'named', cell: ({ events }) => events?.join(', ') ?? 'all' },
    {
      name: 'State',
      place: 'side',
      cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge>,
      below: ({ last_error: error }) => error,
    },
    { name: 'Waiting', kind: 'number', cell: ({ waiting }) => count(waiting) },
    {
      name: 'Last success',
      kind: 'named',
      place: 'wide',
      cell: ({ last_success_at: at }) => <Time at={at} />,
    },
  ],
  actions: ({ webhook_id: id, url, state }) => [
    {
      label: 'Test',
      title: `Send a test event to ${url}`,
      consequence: 'The endpoint gets an event of the type webhook.test now. The result changes nothing.',
      command: `latchkey webhook test ${quoted(id)}`,
      run: async () => <Result attempt={await send<Attempt>('POST', `${pathOf(id)}/test`)} />,
    },
    ...(state === 'active'
      ? []
      : [
          {
            label: 'Resume',
            title: `Deliver to ${url} again`,
            consequence: 'The endpoint gets at once what it has missed in the last 30 days.',
            command: `latchkey webhook resume ${quoted(id)}`,
            run: () => send('POST', `${pathOf(id)}/resume`),
          },
        ]),
    {
      label: 'Rotate',
      title: `Replace the secret of ${url}`,
      consequence:
        'The new secret is shown once. For a day each event is signed with both secrets: change the receiver within that day.',
      command: `latchkey webhook rotate ${quoted(id)}`,
      run: async () => {
        const { secret } = await send<Webhook>('POST', `${pathOf(id)}/rotate`);
        return <Secret name="secret" secret={secret} />;
      },
    },
    {
      label: 'Remove',
      title: `Remove ${url}`,
      consequence: 'The endpoint gets no further event, and the events that wait for it are not sent.',
      command: `latchkey webhook remove ${quoted(id)}`,
      isDangerous: true,
      run: () => send('DELETE', pathOf(id)),
    },
  ],
  add: {
    label: 'Add an endpoint',
    title: 'Add an endpoint',
    consequence:
      'The endpoint gets events from now on, signed as Standard Webhooks says. Its secret is shown once: the receiver needs it.',
    command: (form) => {
      const types = taken(form, 'events').join(',');
      const url = fieldText(form, 'url');
      return `latchkey webhook add ${url === '' ? 'URL' : quoted(url)}${types === '' ? '' : ` --events ${types}`}`;
    },
    run: async (form) => {
      const types = taken(form, 'events');
      const body = { url: fieldText(form, 'url'), ...(types.length > 0 && { events: types }) };
      const { secret } = await send<Webhook>('POST', '/admin/v1/webhooks', body);
      return <Secret name="secret" secret={secret} />;
    },
    children: <EndpointFields />,
  },
};

function EndpointFields() {
  return (
    <>
      <Field label="URL" name="url" isRequired example="https://example.com/latchkey" />
      <Checkboxes legend="Events (none chosen: all)" name="events" choices={events} />
    </>
  );
}

function Result({ attempt: { delivered, status, error, duration_ms: ms } }: { attempt: Attempt }) {
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

const events = [
  ['license.issued', 'a license key was sold'],
  ['license.disabled', 'a license was disabled'],
  ['license.enabled', 'a license was enabled'],
  ['license.renewed', 'a license was renewed'],
  ['license.expiring', 'a license ends soon'],
  ['license.expired', 'a license has ended'],
  ['license.recovery_requested', 'a buyer has lost the license keys'],
  ['license.rekeyed', 'a license key was replaced'],
  ['license.transferred', 'a license got another customer'],
  ['license.forgotten', 'the customer of a license was forgotten'],
  ['purchase.refunded', 'a sale was refunded'],
  ['seat.taken', 'a device took a seat'],
  ['seat.ended', 'a device lost its seat'],
  ['lease.expiring', 'a lease ends in three days and was not renewed'],
  ['outbox.needs_review', 'a change waits for a person'],
  ['upstream.down', 'the upstream is unavailable'],
  ['upstream.up', 'the upstream answers again'],
] as const;

function deliveriesOf(id: string): List<Delivery> {
  return {
    title: 'Deliveries',
    intro: (
      <p>
        <a href={hrefTo(['webhooks'])}>All webhooks</a>, endpoint <code>{id}</code>
      </p>
    ),
    from: [`${pathOf(id)}/deliveries`, 'deliveries', 50],
    command: `latchkey webhook deliveries ${quoted(id)}`,
    caption: 'Events that were sent to the endpoint, the latest first',
    empty: 'No event was sent yet. “Test” on the page Webhooks sends one.',
    keyOf: ({ event_id: event }) => event,
    nameOf: ({ type, event_id: event }) => `${type} ${event}`,
    columns: deliveryColumns,
    actions: ({ event_id: event, type }) => [
      {
        label: 'Replay',
        title: `Send ${type} again`,
        consequence: 'Every endpoint that gets events of this type gets the event again, under the same id.',
        command: `latchkey webhook replay ${quoted(event)}`,
        run: () => replay(event),
      },
    ],
  };
}

const deliveryColumns: readonly Column<Delivery>[] = [
  {
    name: 'Event',
    cell: ({ type }) => type,
    below: ({ event_id: event }) => <Id of={event} />,
  },
  {
    name: 'State',
    place: 'side',
    cell: ({ state }) => <Badge tone={state === 'delivered' ? 'ok' : 'fail'}>{state}</Badge>,
    below: ({ error }) => error,
  },
  { name: 'Attempts', kind: 'number', cell: ({ attempts }) => count(attempts) },
  { name: 'Last attempt', cell: ({ at }) => <Time at={at} /> },
];

async function replay(event: string) {
  const path = `/admin/v1/webhook-events/${encodeURIComponent(event)}/replay`;
  const { attempts } = await send<{ attempts: Attempt[] }>('POST', path);
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
