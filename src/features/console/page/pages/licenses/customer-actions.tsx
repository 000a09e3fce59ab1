import type { LicenseDetail, LicenseObject } from '../../../../../wire/license.ts';
import { ApiError, send } from '../../api.ts';
import { count, counted, shownKey } from '../../format.ts';
import { Action, type ActionProps, Field, fieldText } from '../../parts/action.tsx';
import { Command, quoted } from '../../parts/command.tsx';
import { hrefTo } from '../../router.ts';
import { commandKey } from './license-actions.tsx';

/** What a seller does for the customer of a license, at an authority. */
export function CustomerActions({ detail, onDone }: { detail: LicenseDetail; onDone: () => void }) {
  const { buyer_email: email } = detail.license;
  const actions = [
    rekey(detail),
    transfer(detail),
    setUses(detail),
    ...(email === '' ? [] : [forget(email)]),
  ];
  return (
    <>
      {actions.map((action) => (
        <Action key={action.label} {...action} onDone={onDone} />
      ))}
    </>
  );
}

function pathOf(key: string, act: string): string {
  return `/admin/v1/licenses/${encodeURIComponent(key)}/${act}`;
}

function rekey({ license: { license_key: key }, seats_taken: seats }: LicenseDetail): ActionProps {
  const devices =
    seats === 0
      ? ''
      : ` ${counted(seats, 'device keeps its seat, and needs', 'devices keep their seats, and need')} the new key.`;
  return {
    label: 'Replace key',
    title: `Replace the key ${shownKey(key)}?`,
    consequence: `The license gets a new key. The old key is disabled, and cannot be enabled again.${devices} No e-mail is sent: give the new key to the customer yourself.`,
    command: `latchkey license rekey ${quoted(commandKey(key))}`,
    isDangerous: true,
    run: async () => {
      const { license_key: newKey } = await send<LicenseObject>('POST', pathOf(key, 'rekey'), {});
      return (
        <>
          <p>The new license key:</p>
          <Command line={newKey} />
          <p>
            <a href={hrefTo(['licenses', newKey])}>Show {shownKey(newKey)}</a>
          </p>
        </>
      );
    },
  };
}

function transfer({ license: { license_key: key }, seats_taken: seats }: LicenseDetail): ActionProps {
  const freesSeats = (form: FormData): boolean => fieldText(form, 'free_seats') === 'true';
  return {
    label: 'Transfer',
    title: `Give ${shownKey(key)} to another customer?`,
    consequence: `The license keeps its key and history, and has ${counted(seats, 'device')}.`,
    command: (form) =>
      [
        `latchkey license transfer ${quoted(commandKey(key))}`,
        `--email ${quoted(fieldText(form, 'buyer_email') || 'EMAIL')}`,
        ...(freesSeats(form) ? ['--free-seats'] : []),
      ].join(' '),
    run: (form) =>
      send('POST', pathOf(key, 'transfer'), {
        buyer_email: fieldText(form, 'buyer_email'),
        free_seats: freesSeats(form),
      }),
    children: (
      <>
        <Field label="E-mail address of the new customer" name="buyer_email" type="email" isRequired />
        <Field
          label="Devices"
          name="free_seats"
          value="false"
          options={[
            ['false', 'Keep their seats'],
            ['true', 'Lose their seats and their names'],
          ]}
        />
      </>
    ),
  };
}

function setUses({ license: { license_key: key, uses } }: LicenseDetail): ActionProps {
  return {
    label: 'Set uses',
    title: `Set the uses of ${shownKey(key)}`,
    consequence: `The license has ${counted(uses, 'use')} now. Uses that arrive later are added to the new count.`,
    command: (form) =>
      `latchkey license set-uses ${quoted(commandKey(key))} ${quoted(fieldText(form, 'uses') || count(uses))}`,
    run: (form) => send('PUT', pathOf(key, 'uses'), { uses: fieldText(form, 'uses') }),
    children: <Field label="Uses" name="uses" type="number" value={String(uses)} isRequired />,
  };
}

function forget(email: string): ActionProps {
  return {
    label: 'Forget customer',
    title: `Forget ${email}?`,
    consequence:
      'The address is removed from all licenses and purchases of this customer, and the names of the devices are removed. Keys, counts and seats stay. This cannot be undone. Backups still have both.',
    command: `latchkey customer forget ${quoted(email)}`,
    isDangerous: true,
    run: async (form) => {
      if (fieldText(form, 'buyer_email') !== email) {
        const detail = 'It is not the address of this customer.';
        const errors = [{ parameter: 'buyer_email', code: 'different', detail }];
        throw new ApiError(0, 'different', detail, errors);
      }
      await send('POST', '/admin/v1/customers/forget', { buyer_email: email });
    },
    children: <Field label="Type the e-mail address again" name="buyer_email" type="email" isRequired />,
  };
}
