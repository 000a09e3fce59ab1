import type { ActivationObject } from '../../../../leases/wire/activation.ts';
import { withQuery } from '../../api.ts';
import { count, shownKey } from '../../format.ts';
import type { PageProps } from '../../page-props.ts';
import { quoted, SameCommand } from '../../parts/command.tsx';
import { Heading } from '../../parts/page.tsx';
import { ListTable, type Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { hrefTo } from '../../router.ts';
import { usePages } from '../../use-data.ts';
import { ProductChoice, useProductNames, type ProductNames } from '../products.tsx';
import { deviceName, DeviceState, SeatActions } from './seats.tsx';

const choices = [
  ['', 'all'],
  ['active', 'active'],
  ['copied', 'perhaps copied'],
  ['blocked', 'blocked'],
] as const;

const filters: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  active: { state: 'active' },
  copied: { copied: 'true' },
  blocked: { state: 'blocked' },
};

const options: Readonly<Record<string, string>> = {
  active: ' --state active',
  copied: ' --copied',
  blocked: ' --state blocked',
};

/** The devices that have asked for seats, of all licenses. */
export function Devices({ route: { query }, overview }: PageProps) {
  const which = query.get('which') ?? '';
  const product = query.get('product') ?? '';
  const names = useProductNames(overview.data?.role ?? 'authority');
  const filter = { ...filters[which], product_key: product, limit: '25' };
  const pages = usePages<ActivationObject>(withQuery('/admin/v1/activations', filter), 'activations');
  return (
    <>
      <Heading title="Devices" />
      <div class="filters">
        <nav class="choice" aria-label="Devices">
          {choices.map(([value, text]) => (
            <a
              key={value}
              href={hrefTo(['devices'], { ...Object.fromEntries(query), which: value })}
              aria-current={which === value ? 'true' : undefined}
            >
              {text}
            </a>
          ))}
        </nav>
        <ProductChoice names={names} path={['devices']} query={query} />
      </div>
      <ListTable
        caption={pages.total === null ? 'Devices' : `Devices: ${count(pages.total)}`}
        pages={pages}
        columns={columnsOf(names, pages.reload)}
        keyOf={({ activation_id: id }) => id}
        empty={
          which === '' && product === ''
            ? 'No device has asked for a seat yet. Devices ask through leases: see latchkey lease setup.'
            : 'No device fits this filter.'
        }
      />
      <SameCommand
        line={`latchkey activation list${options[which] ?? ''}${product === '' ? '' : ` --product ${quoted(product)}`}`}
      />
    </>
  );
}

function columnsOf(names: ProductNames, onDone: () => void): readonly Column<ActivationObject>[] {
  return [
    { name: 'Device', cell: (activation) => deviceName(activation) },
    {
      name: 'License key',
      cell: ({ license_key: key }) => (
        <a class="key" href={hrefTo(['licenses', key])}>
          {shownKey(key)}
        </a>
      ),
    },
    { name: 'Product', cell: ({ product_key: key }) => names.get(key) ?? key },
    {
      name: 'Seat',
      cell: (activation) => (
        <>
          {activation.has_seat ? 'taken' : 'free'} <DeviceState activation={activation} />
        </>
      ),
    },
    { name: 'Last seen', cell: ({ renewed_at: at }) => (at === null ? 'never' : <Time at={at} />) },
    { name: 'Actions', cell: (activation) => <SeatActions activation={activation} onDone={onDone} /> },
  ];
}
