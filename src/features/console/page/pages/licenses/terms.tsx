import type { ComponentChildren } from 'preact';
import type { LicenseDetail, LicenseObject } from '../../../../../wire/license.ts';
import { send } from '../../api.ts';
import { shownKey } from '../../format.ts';
import { Action, type ActionProps, Field, fieldText } from '../../parts/action.tsx';
import { changedOptions, changedParameters, type Texts } from '../../parts/changes.ts';
import { quoted } from '../../parts/command.tsx';
import { commandKey } from './license-actions.tsx';

/** The daemon refuses an entitlement that has a space. */
export const entitlements = {
  option: '--entitlement',
  value: (text: string) =>
    text
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== ''),
};

/** The fields of the terms of a license. */
export const licenseTerms = {
  expires_at: { option: '--expires' },
  entitlements,
  uses_limit: { option: '--uses-limit' },
  seats: { option: '--seats' },
  metadata: { option: '--metadata', value: (text: string) => text || {} },
} as const;

/** `empty`: what a license without an end of its own has. `children`: fields before the last one. */
export function TermFields({
  before = {},
  empty,
  children,
}: {
  before?: Texts<keyof typeof licenseTerms>;
  empty: string;
  children?: ComponentChildren;
}) {
  return (
    <>
      <Field
        label="Valid until"
        name="expires_at"
        type="date"
        value={before.expires_at ?? ''}
        help={`Until the end of this day (UTC); empty: ${empty}.`}
      />
      <EntitlementsField value={before.entitlements ?? ''} />
      {children}
      <Field
        label="Metadata"
        name="metadata"
        isLong
        value={before.metadata ?? ''}
        help={'What you want to note, as a JSON object such as {"order": 1017}. Your software can read it.'}
      />
    </>
  );
}

export function EntitlementsField({ value }: { value: string }) {
  return (
    <Field
      label="Entitlements"
      name="entitlements"
      value={value}
      example="pro, export"
      help="What your software unlocks: words with commas between them."
    />
  );
}

/** What a seller does with the terms of a license, at an authority. */
export function TermActions({ detail, onDone }: { detail: LicenseDetail; onDone: () => void }) {
  return (
    <>
      {typeof detail.license.expires_at === 'string' && <Action {...renew(detail.license)} onDone={onDone} />}
      <Action {...changeTerms(detail.license)} onDone={onDone} />
    </>
  );
}

function renew({ license_key: key }: LicenseObject): ActionProps {
  return {
    label: 'Renew',
    title: `Renew ${shownKey(key)}`,
    consequence: 'The time is added to the end of the license, or to now if the license has ended.',
    command: (form) =>
      `latchkey license renew ${quoted(commandKey(key))} --for ${quoted(fieldText(form, 'for') || '1y')}`,
    run: (form) =>
      send('POST', `/admin/v1/licenses/${encodeURIComponent(key)}/renew`, { for: fieldText(form, 'for') }),
    children: (
      <Field
        label="For"
        name="for"
        value="1y"
        help="Such as 30d, 2w, 6mo or 1y."
        pattern="[1-9][0-9]{0,3}(d|w|mo|y)"
        isRequired
      />
    ),
  };
}

function changeTerms(license: LicenseObject): ActionProps {
  const { license_key: key, expires_at: end, entitlements: words = [], metadata } = license;
  const before = {
    expires_at: end?.slice(0, 10) ?? '',
    entitlements: words.join(', '),
    uses_limit: license.uses_limit?.toString() ?? '',
    seats: license.seats?.toString() ?? '',
    metadata: metadata === undefined ? '' : JSON.stringify(metadata),
  };
  return {
    label: 'Change terms',
    title: `Change the terms of ${shownKey(key)}`,
    consequence:
      'Your software gets the new terms with its next answer, and a device with its next lease. Only what you change here is changed.',
    command: (form) =>
      [
        `latchkey license update ${quoted(commandKey(key))}`,
        ...changedOptions(form, licenseTerms, before),
      ].join(' '),
    run: (form) =>
      send(
        'PUT',
        `/admin/v1/licenses/${encodeURIComponent(key)}`,
        changedParameters(form, licenseTerms, before),
      ),
    children: (
      <TermFields before={before} empty="for ever">
        <Field
          label="Limit of the uses"
          name="uses_limit"
          type="number"
          value={before.uses_limit}
          help="Empty: none."
        />
        <Field
          label="Seats"
          name="seats"
          type="number"
          value={before.seats}
          help="On how many devices it works at the same time; empty: as many as its product says."
        />
      </TermFields>
    ),
  };
}
