import type { Activation } from '../../answers.ts';
import { ProductName } from '../../daemon.tsx';
import type { PageProps } from '../../page-props.ts';
import { productFilter } from '../../parts/filter.tsx';
import { ListPage, type List } from '../../parts/list.tsx';
import { Time } from '../../parts/time.tsx';
import { LicenseLink } from './badges.tsx';
import { deviceName, DeviceState, seatActions } from './seats.tsx';

/** The devices that have asked for seats, of all licenses. */
const devices: List<Activation> = {
  title: 'Devices',
  path: ['devices'],
  from: ['/admin/v1/activations', 'activations', 25],
  command: 'latchkey activation list',
  filters: [
    { name: 'search', label: 'Part of a device name, a license key or an e-mail address', kind: 'live' },
    {
      name: 'which',
      label: 'Devices',
      kind: 'links',
      choices: [
        ['', 'all'],
        ['active', 'active'],
        ['copied', 'perhaps copied'],
        ['blocked', 'blocked'],
      ],
      sent: (which) => (which === 'copied' ? { copied: 'true' } : { state: which }),
      option: (which) => (which === 'copied' ? '--copied' : `--state ${which}`),
    },
    productFilter,
  ],
  caption: 'Devices',
  empty: 'No device has asked for a seat yet. Devices ask through leases: see latchkey lease setup.',
  noMatch: 'No device fits this filter.',
  keyOf: ({ activation_id: id }) => id,
  nameOf: deviceName,
  columns: [
    { name: 'Device', cell: deviceName },
    { name: 'License key', cell: ({ license_key: key }) => <LicenseLink to={key} /> },
    { name: 'Product', place: 'wide', cell: ({ product_key: key }) => <ProductName of={key} /> },
    {
      name: 'Seat',
      place: 'side',
      cell: (activation) => (
        <>
          {activation.has_seat ? 'taken' : 'free'} <DeviceState activation={activation} />
        </>
      ),
    },
    { name: 'Last seen', kind: 'named', cell: ({ renewed_at: at }) => <Time at={at} /> },
  ],
  actions: seatActions,
};

export const Devices = ({ route: { query } }: PageProps) => <ListPage list={devices} query={query} />;
