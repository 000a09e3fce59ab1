import { useEffect } from 'preact/hooks';
import type { LicenseDetail } from '../../../../../wire/license.ts';
import type { ActivationObject } from '../../../../leases/wire/activation.ts';
import { send, withQuery } from '../../api.ts';
import { count, counted } from '../../format.ts';
import { Action } from '../../parts/action.tsx';
import { quoted } from '../../parts/command.tsx';
import { Badge, type Tone } from '../../parts/notice.tsx';
import { Section } from '../../parts/page.tsx';
import { ListTable, type Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { usePages } from '../../use-data.ts';

/** The devices that have asked for a seat of a license. */
export function Seats({
  detail,
  licenseKey,
  version,
}: {
  detail: LicenseDetail;
  licenseKey: string;
  version: string;
}) {
  const { product, seats_taken: taken } = detail;
  const path = withQuery('/admin/v1/activations', { license_key: licenseKey, limit: '100' });
  const pages = usePages<ActivationObject>(detail.activations > 0 ? path : null, 'activations');
  useEffect(() => {
    if (pages.items !== null) pages.reload();
  }, [version]);
  const title =
    product.seats === null
      ? `Seats: ${count(taken)} taken, any number of devices may have one`
      : `Seats: ${count(taken)} of ${count(product.seats)} taken`;
  if (detail.activations === 0) {
    return (
      <Section title={title}>
        <p class="quiet">
          No device has asked for a seat. Devices ask through leases; software that verifies online needs
          none.
        </p>
      </Section>
    );
  }
  const seats = numbered(pages.items ?? []);
  return (
    <Section title={title}>
      {product.seats !== null && taken >= product.seats && (
        <p>
          All seats are taken: another device is refused until you free a seat or a device gives one back.
        </p>
      )}
      <ListTable
        caption="Devices, those with a seat first"
        pages={{ ...pages, items: pages.items === null ? null : seats.map(({ activation }) => activation) }}
        columns={columnsOf(
          new Map(seats.map(({ activation, seat }) => [activation.activation_id, seat])),
          pages.reload,
        )}
        keyOf={({ activation_id: id }) => id}
        empty="No device has asked for a seat."
      />
    </Section>
  );
}

type Numbered = { activation: ActivationObject; seat: number | null };

/** Numbers the seats in the order in which they were taken. Devices without a seat come last. */
function numbered(activations: readonly ActivationObject[]): Numbered[] {
  const [seated, others] = [true, false].map((has) => activations.filter((each) => each.has_seat === has));
  return [
    ...(seated ?? []).map((activation, index) => ({ activation, seat: index + 1 })),
    ...(others ?? []).map((activation) => ({ activation, seat: null })),
  ];
}

const tones: Readonly<Record<ActivationObject['state'], Tone>> = {
  active: 'ok',
  ended: 'quiet',
  replaced: 'quiet',
  blocked: 'fail',
};

export function DeviceState({
  activation: { state, copied_at: copiedAt },
}: {
  activation: ActivationObject;
}) {
  return (
    <>
      {state !== 'active' && <Badge tone={tones[state]}>{state}</Badge>}
      {copiedAt !== null && (
        <>
          {' '}
          <Badge tone="warn">copied</Badge>
        </>
      )}
    </>
  );
}

function columnsOf(
  seats: ReadonlyMap<string, number | null>,
  onDone: () => void,
): readonly Column<ActivationObject>[] {
  return [
    { name: 'Seat', kind: 'number', cell: ({ activation_id: id }) => seats.get(id) ?? '–' },
    {
      name: 'Device',
      cell: (activation) => (
        <>
          {deviceName(activation)} <DeviceState activation={activation} />
        </>
      ),
    },
    { name: 'Since', cell: ({ created_at: at }) => <Time at={at} /> },
    { name: 'Last seen', cell: ({ renewed_at: at }) => (at === null ? 'never' : <Time at={at} />) },
    { name: 'Free again', cell: ({ seat_until: at }) => at !== null && <Time at={at} /> },
    { name: 'Actions', cell: (activation) => <SeatActions activation={activation} onDone={onDone} /> },
  ];
}

/** The name of a device, or the beginning of the thumbprint of its key. */
export function deviceName({ device_name: name, device }: ActivationObject): string {
  return name ?? `device ${device.slice(0, 8)}`;
}

/** Free a seat, or block a device. */
export function SeatActions({ activation, onDone }: { activation: ActivationObject; onDone: () => void }) {
  const { activation_id: id, state, has_seat: hasSeat } = activation;
  const name = deviceName(activation);
  const act = (which: 'end' | 'block') => () =>
    send<void>('POST', `/admin/v1/activations/${encodeURIComponent(id)}/${which}`, {});
  return (
    <div class="actions">
      {hasSeat && state === 'active' && (
        <Action
          label="Free seat"
          about={name}
          title={`Free the seat of ${name}?`}
          consequence={freeing}
          command={`latchkey activation end ${quoted(id)}`}
          run={act('end')}
          onDone={onDone}
        />
      )}
      {state !== 'blocked' && (
        <Action
          label="Block"
          about={name}
          title={`Block ${name}?`}
          consequence={blocking}
          command={`latchkey activation block ${quoted(id)}`}
          isDangerous
          run={act('block')}
          onDone={onDone}
        />
      )}
    </div>
  );
}

const freeing = `The lease of the device ends at its next renewal, and another device can take the seat. The device itself may take a seat again. A seat is free at once ${counted(3, 'time')} in 30 days for each license; after that, when the last lease of the device ends.`;

const blocking =
  'The lease of the device ends at its next renewal, its seat becomes free, and the device gets no lease of this license again. This cannot be undone. A device that makes another key can take a seat: disable the license to prevent that.';
