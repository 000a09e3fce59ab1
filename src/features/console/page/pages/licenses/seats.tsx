import { useEffect } from 'preact/hooks';
import type { Activation } from '../../answers.ts';
import type { LicenseDetail } from '../../../../../wire/license.ts';
import { send, withQuery } from '../../api.ts';
import { count, counted } from '../../format.ts';
import { Actions, type ActionProps } from '../../parts/action.tsx';
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
  onDone,
}: {
  detail: LicenseDetail;
  licenseKey: string;
  version: string;
  /** A seat was freed, or a device blocked. */
  onDone: () => void;
}) {
  const { product, seats_taken: taken } = detail;
  const path = withQuery('/admin/v1/activations', { license_key: licenseKey, limit: '100' });
  const pages = usePages<Activation>(detail.activations > 0 ? path : null, 'activations');
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
  const done = (): void => {
    pages.reload();
    onDone();
  };
  // In the order in which the seats were taken.
  const items = pages.items?.toSorted((one, other) => Number(other.has_seat) - Number(one.has_seat)) ?? null;
  return (
    <Section title={title}>
      {product.seats !== null && taken >= product.seats && (
        <p>
          All seats are taken: another device is refused until you free a seat or a device gives one back.
        </p>
      )}
      <ListTable
        caption="Devices, those with a seat first"
        pages={{ ...pages, items }}
        columns={columnsOf(items ?? [])}
        actions={(each) => <Actions list={seatActions(each)} about={deviceName(each)} onDone={done} />}
        keyOf={({ activation_id: id }) => id}
        empty="No device has asked for a seat."
      />
    </Section>
  );
}

const tones: Readonly<Record<Activation['state'], Tone>> = {
  active: 'ok',
  ended: 'quiet',
  replaced: 'quiet',
  blocked: 'fail',
};

export function DeviceState({ activation: { state, copied_at: copiedAt } }: { activation: Activation }) {
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

function columnsOf(sorted: readonly Activation[]): readonly Column<Activation>[] {
  return [
    {
      name: 'Seat',
      kind: 'number',
      cell: (activation) => (activation.has_seat ? sorted.indexOf(activation) + 1 : '–'),
    },
    {
      name: 'Device',
      place: 'main',
      cell: (activation) => (
        <>
          {deviceName(activation)} <DeviceState activation={activation} />
        </>
      ),
    },
    { name: 'Since', place: 'wide', cell: ({ created_at: at }) => <Time at={at} /> },
    { name: 'Last seen', kind: 'named', cell: ({ renewed_at: at }) => <Time at={at} /> },
    { name: 'Free again', place: 'wide', cell: ({ seat_until: at }) => at !== null && <Time at={at} /> },
  ];
}

/** The name of a device, or the beginning of the thumbprint of its key. */
export function deviceName({ device_name: name, device }: Activation): string {
  return name ?? `device ${device.slice(0, 8)}`;
}

/** Free a seat, or block a device. */
export function seatActions(activation: Activation): readonly ActionProps[] {
  const { activation_id: id, state, has_seat: hasSeat } = activation;
  const name = deviceName(activation);
  const act = (which: 'end' | 'block') => ({
    command: `latchkey activation ${which} ${quoted(id)}`,
    run: () => send('POST', `/admin/v1/activations/${encodeURIComponent(id)}/${which}`, {}),
  });
  const free = {
    label: 'Free seat',
    title: `Free the seat of ${name}?`,
    consequence: `The lease of the device ends at its next renewal, and another device can take the seat. The device itself may take a seat again. A seat is free at once ${counted(3, 'time')} in 30 days for each license; after that, when the last lease of the device ends.`,
    ...act('end'),
  };
  const block = {
    label: 'Block',
    title: `Block ${name}?`,
    consequence:
      'The lease of the device ends at its next renewal, its seat becomes free, and the device gets no lease of this license again. This cannot be undone. A device that makes another key can take a seat: disable the license to prevent that.',
    isDangerous: true,
    ...act('block'),
  };
  return [...(hasSeat && state === 'active' ? [free] : []), ...(state === 'blocked' ? [] : [block])];
}
